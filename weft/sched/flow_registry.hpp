// flow_registry: the flows that live in an executor.
//
// Its one idea: whatever a flow is told may end it, end others, or begin new ones, here and now. So
// a walk that tells takes the list empty first, and puts each flow back before it is told: a flow
// that leaves meanwhile leaves a whole list, whichever of the two it is in.
//
//      taken: [d] [e]          c is told          flows: [a] [b] [c] <- enroll()
//
// On the executor's own thread, all of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/list.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

// Invariants:
// R1  each flow that is enrolled is in flows_, or in the list of a walk that has not come to it
// R2  once is_ending() is true, each of them has been asked to stop, or is about to be by a walk
class flow_registry {
public:
    // A flow is asked to stop at once if the others were.
    void enroll(flow& f) noexcept;
    void strike_off(flow& f) noexcept;

    // In the order in which they are first seen: when they are enrolled, or before it.
    void number(flow& f) noexcept {
        if (f.serial == 0) f.serial = ++numbers_given_;
    }

    // Asks all to stop, the eldest first, and whatever is enrolled from now on. Only once.
    void request_stop_of_all() noexcept;
    bool is_ending() const noexcept { return ending_; }

    std::size_t count() const noexcept { return count_; }
    flow* youngest() const noexcept { return flows_.back(); }
    // The same of those that nobody is ending yet.
    flow* youngest_to_end() const noexcept;
    const flow* find(executor::flow_question is_it, const void* with) const noexcept;
    // For a look that calls nothing.
    const list<flow>& flows() const noexcept { return flows_; }

private:
    list<flow> flows_;
    std::size_t count_ = 0;
    std::uint64_t numbers_given_ = 0;
    bool ending_ = false;
};

}  // namespace weft::detail
