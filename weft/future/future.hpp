// future<T>: an outcome that comes later, and the continuations that use the outcome.
//
// Design: the producer and the consumer of the outcome share one block, and no thread polls: the
// continuation of a future is posted to its executor when the outcome exists. Pending futures cost
// memory and no time.
//
// - The function given to then() takes the value by value, by reference, moved, or not at all; or
//   the function takes the future itself, whatever its outcome. The function runs on the future's
//   executor, in its turn, in the order in which the outcomes came, and never within then() or
//   set_value(). If the function returns a future, the future that then() gave has the outcome of
//   the returned one.
// - The function may wait: it runs in a borrowed fiber, see in_fiber.hpp. After `plain` the
//   function must not wait, and runs on the executor's own stack, which saves two switches.
// - A future has one outcome: a value, an exception, a std::error_code, or a stop. An outcome other
//   than a value goes down the chain, past the functions that take a value, to a function that
//   takes the future, or to get().
// - request_stop() asks for an end: a future that has not begun is stopped at once, with all it
//   waits for; a function that runs in a fiber is stopped where it waits. A future that is dropped
//   stops nothing.
//
// A future has one owner. A call that takes the outcome empties the future; such a call aborts if
// the future is empty, or if another agent waits for it. shared_future is for several owners.
//
// Limits: the executor outlives what was to run on it. A future that waits for itself waits for
// ever.
//
//   weft::promise<int> p(loop);
//   weft::future<std::string> f = p.get_future().then([](int n) { return std::to_string(n); });
//   p.set_value(7);                               // from any thread
//   std::string s = f.get();                      // suspends a fiber, blocks a thread
//   std::string t = co_await f;                   // in a coroutine
#pragma once

#include <chrono>
#include <source_location>

#include "weft/base/result.hpp"
#include "weft/future/detail/continuation.hpp"
#include "weft/future/detail/future_wait_operation.hpp"
#include "weft/future/detail/limited.hpp"
#include "weft/future/detail/poll.hpp"
#include "weft/wait/await.hpp"

namespace weft {

// Passed before a function: the function does not wait.
struct plain_t {
    explicit plain_t() = default;
};
inline constexpr plain_t plain{};

template <class T>
class shared_future;

template <class T = void>
class [[nodiscard]] future {
    using core = detail::future_core;

public:
    using value_type = T;

    future() noexcept = default;  // empty
    // Takes ownership of a reference.
    explicit future(core* c) noexcept : core_(c) {}
    future(future&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    future& operator=(future&& other) noexcept {
        if (this != &other)
            detail::release(std::exchange(core_, std::exchange(other.core_, nullptr)));
        return *this;
    }
    // Releases the outcome. Nothing is stopped, and nothing is waited for.
    ~future() { detail::release_handle(core_); }

    bool valid() const noexcept { return core_ != nullptr; }
    bool is_ready() const noexcept { return core_ != nullptr && core_->word.is_done(); }
    // Precondition: is_ready().
    bool has_value() const noexcept { return is_ready() && core_->has_value(); }
    // The failure as a code; throws an exception that has no code. Precondition: the future is
    // ready and has no value.
    std::error_code error() const {
        return is_ready() && !core_->has_value() ? core_->failure_code() : std::error_code{};
    }

    // The executor that runs the continuations of the future.
    executor& home(std::source_location caller = std::source_location::current()) const {
        return *checked(caller).home;
    }

    // Waits for the value, and takes it. Throws an outcome other than a value: the exception,
    // system_error of a code, or stopped. A stop of the waiter throws stopped too, and leaves the
    // future unchanged.
    T get(std::source_location caller = std::source_location::current()) {
        return await(async_get(caller), caller);
    }
    // As get(), but returns the failure in a result; an exception that is no system_error is
    // thrown.
    result<T> get_result(std::source_location caller = std::source_location::current())
        requires(!std::is_reference_v<T>)
    {
        return await(async_get_result(caller), caller);
    }
    // Wait for the outcome without taking it. Throw stopped if the waiter is stopped. False: no
    // outcome came in time.
    void wait(std::source_location caller = std::source_location::current()) {
        static_cast<void>(await(async_wait({}, caller), caller));
    }
    template <class Clock, class Duration>
    bool wait_until(std::chrono::time_point<Clock, Duration> t,
                    std::source_location caller = std::source_location::current()) {
        return await(async_wait(t, caller), caller);
    }
    template <class Rep, class Period>
    bool wait_for(std::chrono::duration<Rep, Period> d,
                  std::source_location caller = std::source_location::current()) {
        return await(async_wait(d, caller), caller);
    }

    // The operations of these waits, for co_await; co_await of the future itself is async_get().
    detail::future_get_operation<T> async_get(
        std::source_location caller = std::source_location::current()) {
        return detail::future_get_operation<T>(core_, checked(caller));
    }
    detail::future_get_result_operation<T> async_get_result(
        std::source_location caller = std::source_location::current())
        requires(!std::is_reference_v<T>)
    {
        return detail::future_get_result_operation<T>(core_, checked(caller));
    }
    detail::future_wait_operation async_wait(
        time_limit limit = {}, std::source_location caller = std::source_location::current()) {
        return detail::future_wait_operation(checked(caller), limit);
    }
    auto operator co_await() { return detail::operation_holder(async_get(unknown_caller)); }

    // False: the future has an outcome, or a stop was requested before. Any thread that has the
    // future.
    bool request_stop(stop_reason reason = stop_reason::user) noexcept {
        return core_ != nullptr && detail::request_stop(*core_, reason);
    }
    // Drops the future; its work continues, and its outcome is discarded.
    void detach() noexcept { detail::release_handle(std::exchange(core_, nullptr)); }

    // Calls f(value) or f(future) when the outcome exists. Returns the future of f's result; *this
    // is empty afterwards.
    template <class F>
    auto then(F&& f, std::source_location caller = std::source_location::current()) {
        return then_by<detail::fiber_way>(std::forward<F>(f), caller);
    }
    template <class F>
    auto then(plain_t, F&& f, std::source_location caller = std::source_location::current()) {
        return then_by<detail::plain_way>(std::forward<F>(f), caller);
    }

    // A future with the same value; if f(value) says that the value is not needed, the future is
    // stopped.
    template <class F>
    future stop_if(F&& f, std::source_location caller = std::source_location::current()) {
        return continued<detail::fiber_way>(
            detail::cancel_body<T, std::decay_t<F>>{std::forward<F>(f)}, caller);
    }
    template <class F>
    future stop_if(plain_t, F&& f, std::source_location caller = std::source_location::current()) {
        return continued<detail::plain_way>(
            detail::cancel_body<T, std::decay_t<F>>{std::forward<F>(f)}, caller);
    }

    // A future with the same value, which is ready when f(value) has returned true. f is called
    // when the value exists, and again in each turn of the executor, as if f yielded in between; or
    // after each `interval`; or when `e` is set. After `count` calls that return false the outcome
    // is std::errc::resource_unavailable_try_again.
    template <class F>
    future poll(F&& f, std::source_location caller = std::source_location::current()) {
        return polled<detail::fiber_way>({}, std::forward<F>(f), caller);
    }
    template <class F>
    future poll(plain_t, F&& f, std::source_location caller = std::source_location::current()) {
        return polled<detail::plain_way>({}, std::forward<F>(f), caller);
    }
    template <class F>
    future poll(std::size_t count, F&& f,
                std::source_location caller = std::source_location::current()) {
        return polled<detail::fiber_way>({.count = count}, std::forward<F>(f), caller);
    }
    template <class F>
    future poll(plain_t, std::size_t count, F&& f,
                std::source_location caller = std::source_location::current()) {
        return polled<detail::plain_way>({.count = count}, std::forward<F>(f), caller);
    }
    template <class Rep, class Period, class F>
    future poll_every(std::chrono::duration<Rep, Period> interval, F&& f,
                      std::source_location caller = std::source_location::current()) {
        return polled<detail::fiber_way>({.interval = saturated(interval)}, std::forward<F>(f),
                                         caller);
    }
    template <class Rep, class Period, class F>
    future poll_every(plain_t, std::chrono::duration<Rep, Period> interval, F&& f,
                      std::source_location caller = std::source_location::current()) {
        return polled<detail::plain_way>({.interval = saturated(interval)}, std::forward<F>(f),
                                         caller);
    }
    template <class F>
    future poll_on(poll_event& e, F&& f,
                   std::source_location caller = std::source_location::current()) {
        return polled<detail::fiber_way>({.event = &detail::core_of(e)}, std::forward<F>(f),
                                         caller);
    }
    template <class F>
    future poll_on(plain_t, poll_event& e, F&& f,
                   std::source_location caller = std::source_location::current()) {
        return polled<detail::plain_way>({.event = &detail::core_of(e)}, std::forward<F>(f),
                                         caller);
    }

    // A future with the same value, which is ready not before a time point, or a duration after the
    // value came.
    future delay(time_limit t, std::source_location caller = std::source_location::current()) {
        return polled<detail::plain_way>({.first = t}, detail::always{}, caller);
    }

    // A future with the same outcome, if the outcome comes within the limit, which begins here.
    // Otherwise this future is asked to stop; if the stop succeeds, the outcome is
    // std::errc::timed_out.
    future with_timeout(time_limit limit,
                        std::source_location caller = std::source_location::current()) {
        executor& clock_of = home(caller);
        return limited(limit.deadline_from(limit.is_timeout() ? clock_of.now() : time_point()), {},
                       caller);
    }
    // A future that is asked to stop when the token is stopped. The token's source outlives the
    // returned future.
    future with_stop(stop_token token,
                     std::source_location caller = std::source_location::current()) {
        return limited(never, token, caller);
    }

    // A future with the same outcome, whose continuations run on another executor.
    future via(executor& other, std::source_location caller = std::source_location::current()) {
        return continued<detail::plain_way>(detail::then_body<T, detail::same<T>>{}, caller,
                                            &other);
    }

    // For several consumers: see shared_future.hpp.
    shared_future<T> share();

private:
    friend struct detail::core_of_future;

    core& checked(std::source_location caller) const {
        if (core_ == nullptr) [[unlikely]]
            fail("use of a future that is empty", {}, caller);
        return *core_;
    }

    template <class Way, class F>
    auto then_by(F&& f, std::source_location caller) {
        using function = std::decay_t<F>;
        if constexpr (detail::takes_value<T, function>) {
            return continued<Way>(detail::then_body<T, function>{std::forward<F>(f)}, caller);
        } else {
            static_assert(std::invocable<function&, future>,
                          "the function takes the value, nothing, or the future");
            using body = detail::after_body<future, function>;
            return followed<detail::future_source<future>, Way>(body{std::forward<F>(f)}, nullptr,
                                                                caller);
        }
    }
    // A value that exists already moves into the storage of its continuation.
    template <class Way, class Body>
    auto continued(Body&& body, std::source_location caller, executor* on = nullptr) {
        core& c = checked(caller);
        executor& home = on != nullptr ? *on : *c.home;
        if (!c.word.is_done() || !c.has_value() || current_executor() != &home)
            return followed<detail::value_source<T>, Way>(std::move(body), &home, caller);
        using block = detail::ready_continuation<T, std::decay_t<Body>, Way>;
        using next = future<typename std::decay_t<Body>::result>;
        if constexpr (block::may_take_block)
            if (block::can_take_block(c)) {
                core* const made = block::make_in_block(home, c, std::move(body));
                core_ = nullptr;
                return next(made);
            }
        core* const made = block::make(home, std::move(detail::value_of<T>(c)), std::move(body));
        detail::release(std::exchange(core_, nullptr));
        return next(made);
    }
    template <class Source, class Way, class Body>
    auto followed(Body&& body, executor* on, std::source_location caller) {
        core& c = checked(caller);
        executor& home = on != nullptr ? *on : *c.home;
        core* const next =
            detail::continuation<Source, std::decay_t<Body>, Way>::make(home, c, std::move(body));
        core_ = nullptr;
        return future<typename std::decay_t<Body>::result>(next);
    }
    template <class Way, class F>
    future polled(const detail::poll_manner& how, F&& f, std::source_location caller) {
        core& c = checked(caller);
        core* const next =
            detail::poll_block<T, std::decay_t<F>, Way>::make(c, how, std::forward<F>(f));
        core_ = nullptr;
        return future(next);
    }
    future limited(time_point deadline, stop_token token, std::source_location caller) {
        core* const next = detail::limited_block<T>::make(checked(caller), deadline, token);
        core_ = nullptr;
        return future(next);
    }

    core* core_ = nullptr;
};

}  // namespace weft
