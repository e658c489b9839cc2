// flow_registry: the live flows of an executor.
//
// Design: a stop request to a flow may end it, end others, or start new ones, immediately. So a
// walk that requests stops first empties the list, and puts each flow back before its request. A
// flow that leaves meanwhile leaves an intact list, whichever of the two it is in.
//
//      taken: [d] [e]          c is asked         flows: [a] [b] [c] <- register_flow()
//
// All calls on the executor's own thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/detail/list.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

// Invariants:
// R1  each registered flow is in flows_, or in the list of a walk that has not reached it
// R2  once is_ending() is true, each registered flow was asked to stop, or a walk is about to
//     ask it
class flow_registry {
public:
    // The flow is asked to stop at once if the others were.
    void register_flow(flow& f) noexcept;
    void deregister_flow(flow& f) noexcept;

    // Serial numbers follow the order in which flows are first seen: when registered, or earlier.
    void number(flow& f) noexcept {
        if (f.serial == 0) f.serial = ++numbers_given_;
    }

    // Asks all to stop, the oldest first, and each flow that is registered later. Only once.
    void request_stop() noexcept;
    bool is_ending() const noexcept { return ending_; }

    std::size_t count() const noexcept { return count_; }
    flow* youngest() const noexcept { return flows_.back(); }
    // The youngest of those that are not being ended yet.
    flow* youngest_to_end() const noexcept;
    const flow* find(executor::flow_question is_it, const void* with) const noexcept;
    // For a walk that calls no flow.
    const list<flow>& flows() const noexcept { return flows_; }

private:
    list<flow> flows_;
    std::size_t count_ = 0;
    std::uint64_t numbers_given_ = 0;
    bool ending_ = false;
};

}  // namespace weft::detail
