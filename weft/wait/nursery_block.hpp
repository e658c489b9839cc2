// nursery_block: the code that a nursery stands in, as one of the nursery's children.
//
// Its one idea: the block cannot be ended, but it waits. Once a child has failed, each wait of the
// block ends as for a stop, and what it throws is the child's error: so that one leaves the block,
// runs its destructors, and needs nobody who puts it in the place of another. This lasts until the
// nursery has told the error, or is gone.
//
//      child fails, any thread          under the lock           a post to the flow's home
//      scope::leave -> nursery_block::fail ---> list of failed blocks -> flow::deliver_stop
//                                              ^                        |
//      a wait's throw_stopped -----------------+ <----------------------+
//
// A nursery in which no child fails costs its flow two changes of a reference count: the list,
// which is one for the process, holds the blocks of failures that are being told, and mostly none.
//
// Model: test/model/flow_test.cpp
#pragma once

#include <atomic>
#include <exception>

#include "weft/base/atomic.hpp"

namespace weft {

struct flow;

namespace detail {

class nursery_block {
public:
    // Of code that runs in f; null: in none, or in one that begin() names, before which it is told
    // of no failure.
    explicit nursery_block(flow* f) noexcept;
    void begin(flow& f) noexcept;
    nursery_block(const nursery_block&) = delete;
    nursery_block& operator=(const nursery_block&) = delete;
    ~nursery_block();

    // A child has failed with `why`: the first one counts. Any thread, while the block exists.
    void fail(std::exception_ptr why) noexcept;
    // The failure has been told: it ends no wait any more. In the block.
    void forget_failure() noexcept;

    // Whether the code that runs in f is to end because a child has failed.
    static bool has_failed_in(const flow& f) noexcept {
        // Relaxed: who was called in f comes after the failure, see flow::call.
        return failed_count.load(std::memory_order_relaxed) != 0 && failure_in(f) != nullptr;
    }
    // The first such child's error; null where none is.
    static std::exception_ptr failure_in(const flow& f) noexcept;

private:
    static constinit atomic<unsigned> failed_count;

    flow* flow_;
    // These under the lock.
    enum : unsigned char { waits, failed, told } state_ = waits;
    nursery_block* next_ = nullptr;  // in the list of the failed
    std::exception_ptr error_;
};

// Throws the failure of the caller's block, if there is one.
void throw_failure_of_block();

}  // namespace detail
}  // namespace weft
