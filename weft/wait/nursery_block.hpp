// nursery_block: the code that a nursery stands in, as one of the nursery's children.
//
// Its one idea: the block cannot be ended, but it waits. Once a child has failed, each wait of the
// block ends as for a stop, and what it throws is the child's error: so that one leaves the block,
// runs its destructors, and needs nobody who puts it in the place of another. This lasts until the
// nursery has told the error, or is gone.
//
//      child fails, any thread          under the lock           a post to the flow's home
//      scope::leave -> nursery_block::fail ---> failed blocks, and a mark -> flow::deliver_stop
//                                              ^                        |
//      a wait's throw_stopped -----------------+ <----------------------+
//
// A nursery in which no child fails costs its flow two changes of a reference count. The blocks of
// failures that are being told, mostly none, stand in a table of the process, by their flows: a
// flow has no room for more than the mark that it has some there (flow::has_failed_block), and does
// not look unless it has.
//
// Model: test/model/flow_test.cpp
#pragma once

#include <exception>

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

    // The error of the child that was the first to fail in a block of f; null where none has.
    static std::exception_ptr failure_in(const flow& f) noexcept;

private:
    class failed_list;

    flow* flow_;
    // These under the lock of the list.
    enum : unsigned char { waits, failed, told } state_ = waits;
    nursery_block* next_ = nullptr;
    nursery_block* before_ = nullptr;
    std::exception_ptr error_;
};

// Throws the failure of the caller's block, if there is one.
void throw_failure_of_block();

}  // namespace detail
}  // namespace weft
