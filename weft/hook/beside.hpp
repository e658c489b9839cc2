// beside: how a fiber waits whose stack is being unwound. It cannot be suspended; but as its loop
// ends, the others of that loop may have their turns below it, and are ended there in their order.
//
//      end_all() --> the youngest is unwound --> its destructor locks a mutex
//                                                    others_beside: turns of the others;
//                                                    the next one is unwound: it unlocks the mutex
//                                                <-- and goes on
//
// Where nothing can have a turn any more (all are unwound up the stack, or the fiber is killed
// within the turn of another), its thread waits: for other threads. If what it needs is known to be
// a fiber's of the same loop, that is for ever, and the program ends, which says so.
//
// Model: none, one thread has all of it.
#pragma once

#include "weft/hook/in_process.hpp"
#include "weft/wait/executor.hpp"

namespace weft::hook {

class others_beside {
public:
    explicit others_beside(const fiber_core& f) noexcept
        : on_(f.ending && !f.shares_stack() ? current_executor() : nullptr) {}

    // Some turns of the others; every other time, the end of one. False: there is nothing more that
    // could come of it.
    bool run() noexcept {
        is_second_ = !is_second_;
        return on_ != nullptr && on_->run_beside(!is_second_);
    }
    // The same between two questions: where there are none, the thread sleeps for an instant.
    void run_or_rest() noexcept;

private:
    executor* const on_;  // null: it is not being ended, or what lies on its stack may be moved
    bool is_second_ = false;
};

// Between two questions of a fiber for a lock: others run, after which it is asked again, or it has
// waited for `pause`, if that is not null.
void ask_again_after(const fiber_core& f, others_beside& others, duration pause);

}  // namespace weft::hook
