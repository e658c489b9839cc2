// poll_future_core: the part of a poll_future that does not know its T.
//
// Invariants:
// P1  by->future_ == this as long as `by` is set, except during the destruction of an object that
//     is both future and context
// P2  a ready future has an `error`, or a value; a ready future that has neither was abandoned
#pragma once

#include <exception>
#include <source_location>
#include <system_error>
#include <utility>

#include "weft/base/result.hpp"
#include "weft/poll/detail/poll_state.hpp"
#include "weft/poll/waker.hpp"
#include "weft/wait/detail/off_stack.hpp"
#include "weft/wait/operation.hpp"

namespace weft::detail {

class poll_future_core {
public:
    poll_future_core(const poll_future_core&) = delete;
    poll_future_core& operator=(const poll_future_core&) = delete;

    // Whether a value, an exception or the end of the context can be taken.
    bool is_ready() const noexcept { return state_.is_ready(); }
    bool is_pending() const noexcept { return !is_ready(); }

protected:
    using look_function = void (*)(waker&) noexcept;

    poll_future_core() noexcept = default;
    ~poll_future_core() {
        WEFT_ASSERT_AT(!state_.is_awaited(), "a poll_future is destroyed while it is awaited",
                       unknown_caller);
        if (by_ != nullptr) part();
    }

    // Called by each poll with w, the first and the later ones.
    void bind(waker& w, look_function look, std::source_location caller) noexcept {
        if (by_ == &w) [[likely]]
            return;
        if (by_ != nullptr || w.future_ != nullptr) refuse(w, caller);
        join(w, look);
    }
    void join(waker& w, look_function look) noexcept {
        by_ = &w;  // P1
        w.look_ = look;
        w.future_ = this;
    }
    static poll_future_core& future_of(waker& w) noexcept { return *w.future_; }

    // Begins the request for the next value. False: the value was requested already. A wake from
    // elsewhere would not find an object on a shared stack, so such an object aborts.
    bool begin_asking() noexcept {
        if (std::exchange(asked_, true)) return false;
        refuse_on_shared_stack(this, "a poll_future that is polled lies on a shared stack");
        refuse_on_shared_stack(by_, "a context that is polled lies on a shared stack");
        return true;
    }

    // Called before the value or the exception is written.
    void expect_pending(std::source_location caller) const noexcept {
        WEFT_ASSERT_AT(is_pending(), "a poll_future that is ready is set once more", caller);
    }

    // `for_outside`: the value comes from outside weft, so no executor can know whether the wait
    // will end; the wait is excluded from deadlock reports.
    bool start_wait(waiter& w, bool for_outside) noexcept;

    poll_state state_;
    waker* by_ = nullptr;  // P1
    std::exception_ptr error_;
    bool asked_ = false;  // polled since the last value was taken; the poller's and the waiter's

private:
    friend waker;

    void part() noexcept;
    void abandoned_by(waker& w) noexcept;
    [[noreturn]] void refuse(waker& w, std::source_location caller) const noexcept;
};

// Whether a T can report that no value arrived, and why.
template <class T, class Why = std::errc>
inline constexpr bool tells_errors = false;
template <class T, class E, class Why>
inline constexpr bool tells_errors<result<T, E>, Why> = error_for<Why, E>;

template <class T, class Why>
T nothing_came_of_it(Why why) {
    if constexpr (tells_errors<T, Why>)
        return failure(why);
    else if constexpr (tells_errors<T>)  // a code of weft's, which such a result cannot have
        return failure(std::errc::broken_pipe);
    else
        throw_error(make_error_code(why));
}

}  // namespace weft::detail
