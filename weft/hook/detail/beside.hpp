// beside: how a fiber waits while its stack is being unwound. Such a fiber cannot be suspended. As
// its loop ends, the other fibers of the loop may have their turns below it on the stack, and are
// ended there in their order.
//
//      kill_all() --> the youngest is unwound --> its destructor locks a mutex
//                                                    others_beside: turns of the others;
//                                                    the next one is unwound: it unlocks the mutex
//                                                <-- and goes on
//
// If no other fiber can have a turn any more (all are unwound up the stack, or the fiber is killed
// within the turn of another), the fiber's thread waits for other threads. If only a fiber of the
// same loop could end that wait, the wait is endless, and the program aborts with a message. If
// that cannot be known, one line reports the wait after a second.
//
// Model: none, one thread has all of it.
#pragma once

#include "weft/hook/detail/in_process.hpp"
#include "weft/wait/executor.hpp"

namespace weft::hook {

class others_beside {
public:
    // `what` is the awaited object: text of the program's own.
    others_beside(const fiber_core& f, const char* what) noexcept
        : of_(f), what_(what), on_(f.ending && !f.shares_stack() ? current_executor() : nullptr) {}

    // Runs some turns of the other fibers; every other time, ends one of them. False: nothing more
    // can be done here.
    bool run() noexcept {
        is_second_ = !is_second_;
        return on_ != nullptr && on_->run_beside(!is_second_);
    }
    // As run(), between two attempts: if no other fiber can have a turn, the thread sleeps briefly.
    void run_or_rest() noexcept;
    // If no other can have a turn: reports, once, that this has lasted for a second.
    void tell_of_waiting(time_point present) noexcept;

private:
    const fiber_core& of_;
    const char* const what_;
    executor* const on_;  // null: it is not being ended, or the objects on its stack may be moved
    time_point tells_at_ = time_point::min();  // min(): no attempt so far
    bool is_second_ = false;
};

// Between two attempts of a fiber to lock: other fibers run, and then the fiber tries again, or it
// has waited for `pause`, if that is not null.
void ask_again_after(const fiber_core& f, others_beside& others, duration pause);

}  // namespace weft::hook
