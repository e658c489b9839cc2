// nursery_block: the code around a nursery, treated as one of the nursery's children.
//
// Design: the block cannot be ended from outside, but it waits. Once a child has failed, each wait
// of the block ends as for a stop, and throws the child's error. So that error itself leaves the
// block and runs its destructors, and no code has to substitute one exception for another. This
// lasts until the nursery has thrown the error, or is destroyed.
//
//      child fails, any thread          under the lock           a post to the flow's home
//      scope::leave -> nursery_block::fail ---> failed blocks, and a mark -> flow::deliver_stop
//                                              ^                        |
//      a wait's throw_stopped -----------------+ <----------------------+
//
// A nursery in which no child fails costs its flow two changes of a reference count. The blocks
// whose failure is still to be thrown, mostly none, are in a table of the process, found by their
// flows. A flow has room only for a mark that it has such blocks (flow::has_failed_block), and
// looks only if the mark is set.
//
// Model: test/model/flow_test.cpp
#pragma once

#include <exception>

namespace weft {

struct flow;

namespace detail {

class nursery_block {
public:
    // For code that runs in f. Null: outside any flow, or in one that begin() names later, before
    // which no failure is reported to the block.
    explicit nursery_block(flow* f) noexcept;
    void begin(flow& f) noexcept;
    nursery_block(const nursery_block&) = delete;
    nursery_block& operator=(const nursery_block&) = delete;
    ~nursery_block();

    // A child has failed with `why`: only the first call counts. Any thread, while the block
    // exists.
    void fail(std::exception_ptr why) noexcept;
    // The failure has been thrown, and ends no further wait. Called in the block.
    void clear_failure() noexcept;

    // The error of the first failure in a block of f; null if none has failed.
    static std::exception_ptr failure_in(const flow& f) noexcept;

private:
    class failed_list;

    flow* flow_;
    // These are guarded by the lock of the list.
    enum : unsigned char { waits, failed, notified } state_ = waits;
    nursery_block* next_ = nullptr;
    nursery_block* before_ = nullptr;
    std::exception_ptr error_;
};

// Throws the failure of a block of the caller's flow, if there is one.
void throw_failure_of_block();

}  // namespace detail
}  // namespace weft
