// with_timeout: await something, but no longer than a time limit.
//
// Design: the limit holds for every wait within the awaited object, however deep. A wait that is
// cut short ends as by a stop, with the reason `deadline`, and destructors run; an operation that
// has ended by itself wins. Nothing is left behind.
//
// A duration begins when the result of with_timeout is awaited. The deadline is set on the
// awaiter's flow while the object is awaited in place.
//
// The result is a weft::result<T>. If the awaited object itself gives a result<T>, that result is
// passed on, not nested in another.
//
// Limits: an inner deadline cannot extend an outer deadline; the expiry of an outer deadline is not
// turned into timed_out here. A task that was started by start() runs beside the rest of its flow:
// there the awaited object gets a flow of its own.
//
//   weft::result<reply> r = co_await weft::with_timeout(ask(db), 250ms);
//   if (r.error() == std::errc::timed_out) ...
#pragma once

#include <system_error>

#include "weft/base/result.hpp"
#include "weft/task/detail/as_task.hpp"
#include "weft/task/schedule_on.hpp"

namespace weft {
namespace detail {

// Sets the deadline of the running flow for the lifetime of this object.
class flow_deadline {
public:
    explicit flow_deadline(time_point t) noexcept
        : flow_(*current_flow()), before_(flow_.deadline), ours_(t < before_) {
        if (ours_) flow_.set_deadline(t);
    }
    flow_deadline(const flow_deadline&) = delete;
    flow_deadline& operator=(const flow_deadline&) = delete;
    ~flow_deadline() { flow_.set_deadline(before_); }

    // Whether a wait ended early because of this deadline, and for no other reason.
    bool has_ended_it() const noexcept {
        return ours_ && !flow_.stop.stop_requested() && flow_.home->now() >= flow_.deadline;
    }

private:
    flow& flow_;
    const time_point before_;
    const bool ours_;
};

template <class T>
struct within {
    using type = result<kept_t<T>>;
};
template <class T>
    requires std::is_void_v<T>
struct within<T> {
    using type = result<void>;
};
template <class T>
struct within<result<T>> {
    using type = result<T>;
};
template <class T>
using within_t = typename within<T>::type;
template <class T>
inline constexpr bool is_result = std::is_same_v<within_t<T>, T>;

template <class T>
task<within_t<T>> within_deadline(task<T> t, time_point until) {
    const flow_deadline limit(until);
#if WEFT_EXCEPTIONS
    try {
#endif
        if constexpr (std::is_void_v<T>) {
            co_await t;
            co_return result<void>();
        } else if constexpr (is_result<T>) {
            T r = co_await t;
            if (r.error() == std::errc::operation_canceled && limit.has_ended_it())
                co_return failure(std::errc::timed_out);
            co_return r;
        } else {
            co_return within_t<T>(co_await t);
        }
#if WEFT_EXCEPTIONS
    } catch (const stopped& s) {
        if (s.reason != stop_reason::deadline || !limit.has_ended_it()) throw;
    }
    co_return failure(std::errc::timed_out);
#endif
}

// Whether the caller's awaiter chain has a flow to itself, so that a deadline may be set on that
// flow. False if the outermost task was started by start(): the caller of start() continues in the
// same flow, or outside any flow.
struct has_its_flow {
    bool it_has = false;

    static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> h) noexcept {
        const transfer_base* outermost = &h.promise();
        while ((outermost->word & transfer_base::foreign) == 0)
            outermost =
                &std::coroutine_handle<transfer_base>::from_address(outermost->awaiter.address())
                     .promise();
        it_has = current_flow() != nullptr && outermost->is_awaited();
        return false;
    }
    bool await_resume() const noexcept { return it_has; }
};

template <class T>
task<within_t<T>> with_timeout(task<T> t, time_limit limit) {
    const time_point until = deadline_of(limit);
    const bool in_place = co_await has_its_flow();
    if (in_place) co_return co_await within_deadline(std::move(t), until);
    co_return co_await schedule_on(executor_here(), within_deadline(std::move(t), until));
}

}  // namespace detail

template <awaitable A>
auto with_timeout(A&& a, time_limit limit) {
    return detail::with_timeout(detail::as_task(std::forward<A>(a)), limit);
}

}  // namespace weft
