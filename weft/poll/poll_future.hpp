// poll_future<T>: a T that arrives later; each wake checks whether the T has arrived.
//
// Design: a poll_future is a value and not a coroutine. A poll_future has no frame; a wake is one
// call of the user's own operator(), and only the value itself reaches an executor. A poll_future
// therefore connects a source of events that knows nothing of weft to a waiter: a fiber, a task or
// a thread. Without a waiter, is_ready() can be polled.
//
// poll_future<T, Waker> is a future and its context in one object, which is polled when the object
// is awaited; the object may be a variable or a temporary in the co_await. poll_future<T> alone is
// polled with one context at a time; a second context aborts. Without a context, the producer calls
// set().
//
// An await or take() takes the value once; the future may then be polled or set for the next value.
// At most one waiter awaits a poll_future at a time. A stop ends the wait and leaves the future
// unchanged. If T is a result that can hold a std::errc, the result carries a stop
// (operation_canceled) and the end of the context without a value (errc::broken_promise, or
// std::errc::broken_pipe where it can hold no errc of weft's); for other types they are thrown.
//
// Limits: any thread may call set() and wake(), one at a time; all else is for the owner. A
// poll_future outlives the code that sets it, and does not move. A function that takes an operation
// by value (when_all, with_timeout) is given a named poll_future, and a fiber on a shared stack
// keeps its poll_future off that stack. T is stored inside; boxed.hpp stores a T elsewhere.
//
//   struct rpc {                                      // see poll_context.hpp
//       int number;
//       std::optional<reply> answer{};
//       void operator()(weft::poll_future<reply>& f, weft::poll_context<rpc>& c) {
//           if (answer) f.set(*std::move(answer)); else calls[number] = &c;
//       }
//       ~rpc() { calls.erase(number); }
//   };
//   // elsewhere: calls[n]->data().answer = parse(bytes); calls[n]->wake();
//
//   reply r = co_await weft::poll_future<reply, rpc>(7);    // in a coroutine
//   reply s = weft::await(weft::poll_future<reply, rpc>(8)); // in a fiber, on a thread
//
//   weft::poll_future<reply> f;                       // polled by user code
//   weft::poll_context<rpc> c(9);
//   while (!f.poll(c)) turn_of_a_loop();
#pragma once

#include <concepts>
#include <exception>
#include <system_error>
#include <type_traits>

#include "weft/base/detail/caught_exception.hpp"
#include "weft/base/errc.hpp"
#include "weft/poll/detail/poll_future_core.hpp"
#include "weft/poll/detail/poll_slot.hpp"
#include "weft/poll/poll.hpp"
#include "weft/poll/poll_context.hpp"
#include "weft/wait/await.hpp"

namespace weft {

namespace detail {
template <class T>
class poll_promise;

// A Waker whose operator neither throws nor returns a value, whose move could throw.
template <class Waker, class Future>
concept look_cannot_throw = requires(Waker& w, Future& f, poll_context<Waker>& c) {
    { w(f, c) } noexcept -> std::same_as<void>;
};
}  // namespace detail

template <class T = void, class Waker = void>
class poll_future;

template <class T>
class [[nodiscard]] poll_future<T, void> : public detail::poll_future_core {
public:
    using value_type = T;
    static constexpr bool reports_stop = detail::tells_errors<T>;

    poll_future() noexcept = default;
    poll_future(const poll_future&) = delete;
    poll_future& operator=(const poll_future&) = delete;

    // Calls the context unless the future is ready; from then on the context's wakes do. Returns
    // whether the future is ready.
    template <class Waker>
    bool poll(poll_context<Waker>& c,
              std::source_location caller = std::source_location::current()) {
        bind(c, look<Waker>, caller);
        begin_asking();
        c.wake();
        return is_ready();
    }

    // Makes the future ready, once. If the construction of the value throws, the future stays
    // pending. The form for several values has no source_location parameter.
    void set(std::source_location caller = std::source_location::current()) { set_at(caller); }
    template <class V>
    void set(V&& value, std::source_location caller = std::source_location::current()) {
        set_at(caller, std::forward<V>(value));
    }
    template <class... V>
        requires(sizeof...(V) > 1)
    void set(V&&... values) {
        set_at(unknown_caller, std::forward<V>(values)...);
    }
    // Makes the future ready with an exception, which get() or take() throws.
    void set_exception(std::exception_ptr e,
                       std::source_location caller = std::source_location::current()) noexcept {
        expect_pending(caller);
        error_ = std::move(e);
        state_.publish();
    }

    // Returns the value, which stays in the future. Throws the exception that the future holds.
    // Precondition: is_ready().
    std::add_lvalue_reference_t<T> get(
        std::source_location caller = std::source_location::current()) {
        if (!is_ready()) [[unlikely]]
            fail("the value of a poll_future that is pending", {}, caller);
        if (error_ != nullptr) std::rethrow_exception(error_);
        if (!slot_.is_full()) detail::throw_error(make_error_code(errc::broken_promise));
        return slot_.get();
    }
    // Moves the value out, or throws as get() does; the future is pending again. Precondition:
    // is_ready().
    T take(std::source_location caller = std::source_location::current()) {
        if (!is_ready()) [[unlikely]]
            fail("the value of a poll_future that is pending", {}, caller);
        const renewal after(*this);
        if (error_ != nullptr) std::rethrow_exception(error_);
        if (!slot_.is_full()) return detail::nothing_came_of_it<T>(errc::broken_promise);
        return slot_.take();
    }
    // As take(), but a pending future gives `pending`. A loop around it starves the executor.
    weft::poll<T> try_take() {
        if (is_pending()) return pending;
        if constexpr (std::is_void_v<T>) {
            take();
            return weft::poll<T>(std::in_place);
        } else {
            return weft::poll<T>(std::in_place, take());
        }
    }

    // A poll_future is itself an operation, for co_await, weft::await and sync_wait.
    bool ready() {
        if (is_ready()) return true;
        if (by_ == nullptr || !begin_asking()) return false;
        by_->wake();
        return is_ready();
    }
    bool start(waiter& w) noexcept { return start_wait(w, true); }
    T take(const waiter* w, wait_status how) {
        if (how != wait_status::stopped) return take();
        if constexpr (reports_stop)
            return detail::nothing_came_of_it<T>(std::errc::operation_canceled);
        else
            detail::throw_stopped(w->reason());
    }

protected:
    // What a wake of a poll_context<Waker> calls. An operator that cannot throw is called in place.
    template <class Waker>
    static void look(waker& w) noexcept {
        auto& self = static_cast<poll_future&>(future_of(w));
        auto& c = static_cast<poll_context<Waker>&>(w);
        if (!self.is_pending()) return;
        if constexpr (detail::look_cannot_throw<Waker, poll_future>)
            self.tell(c);
        else
            self.ask(c);
    }

private:
    template <class>
    friend class detail::poll_promise;  // sets it in two steps

    template <class... V>
    void set_at(std::source_location caller, V&&... value) {
        expect_pending(caller);
        slot_.fill(std::forward<V>(value)...);
        state_.publish();
    }

    // Kept apart from look(), which is noexcept: a kill within a poll is refused there.
    template <class Waker>
    WEFT_NOINLINE void ask(poll_context<Waker>& c) {
#if WEFT_EXCEPTIONS
        try {
            tell(c);
        } catch (...) {
            set_exception(detail::caught_exception());
        }
#else
        tell(c);
#endif
    }
    // The waiter may destroy the future as soon as it is ready: nothing is touched afterwards.
    template <class Waker>
    void tell(poll_context<Waker>& c) {
        if constexpr (std::is_void_v<decltype(c.data()(*this, c))>) {
            c.data()(*this, c);
        } else if (weft::poll<T> found = c.data()(*this, c); found.is_ready()) {
            if constexpr (std::is_void_v<T>)
                set();
            else
                set(*std::move(found));
        }
    }

    struct renewal {
        explicit renewal(poll_future& f) noexcept : of(f) {}
        ~renewal() {
            of.error_ = nullptr;
            of.slot_.clear();
            of.asked_ = false;
            of.state_.rearm();
        }
        poll_future& of;
    };

    detail::poll_slot<T> slot_;
};

template <class T, class Waker>
class [[nodiscard]] poll_future : public poll_future<T> {
public:
    template <class... V>
        requires std::constructible_from<Waker, V...>
    explicit poll_future(V&&... v) : context_(std::forward<V>(v)...) {
        this->join(context_, this->template look<Waker>);
    }
    poll_future(const poll_future&) = delete;
    poll_future& operator=(const poll_future&) = delete;
    // A wake finds the context whole until the Waker's destructor has removed the context from its
    // source.
    ~poll_future() { this->by_ = nullptr; }  // P1

    bool poll() { return poll_future<T>::poll(context_); }
    poll_context<Waker>& context() noexcept { return context_; }
    Waker& data() noexcept { return context_.data(); }

private:
    poll_context<Waker> context_;
};

}  // namespace weft
