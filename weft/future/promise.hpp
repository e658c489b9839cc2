// promise<T>: gives a future its outcome, from any thread, once.
//
// Design: the first outcome counts: set_value() and the other set functions return false, and
// change nothing, if the future has an outcome, also if the future was stopped. A promise that is
// destroyed without an outcome gives errc::broken_promise. Several threads may try at once.
//
// Limits: get_future() is called once. The executor outlives what is to run on it.
//
//   weft::promise<reply> p;               // continuations run on the caller's executor
//   weft::future<reply> f = p.get_future();
//   sdk_call([p = std::move(p)](reply r) mutable { p.set_value(std::move(r)); });
//
//   weft::future<int> g = weft::make_ready_future(7);    // has its value already
#pragma once

#include <concepts>
#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weft/base/detail/caught_exception.hpp"
#include "weft/future/future.hpp"
#include "weft/wait/operation.hpp"

namespace weft {
namespace detail {

// The executor of a future's continuations if none is named.
inline executor& executor_of_caller() noexcept { return home_of_nobody(); }

// Gives c a value, or the exception of its construction. The caller has claimed c.
template <class T, class... V>
void fulfil(future_core& c, V&&... v) {
#if WEFT_EXCEPTIONS
    try {
        put_value<T>(c, std::forward<V>(v)...);
    } catch (...) {
        // A kill continues from here, and no other agent can give the claimed outcome.
        struct at_end {
            future_core& c;
            ~at_end() {
                if (!c.has_outcome()) c.put_error(errc::broken_promise);
                c.publish_held();
            }
        } const publishes{c};
        c.put_exception(caught_exception());
        return;
    }
#else
    put_value<T>(c, std::forward<V>(v)...);
#endif
    c.publish_held();
}

// A future to which put() gives its outcome before the future is shared.
template <class T, class F>
future<T> ended_future(executor& on, F&& put) {
    future<T> f(promise_block<T>::make(on, 1));
    future_core& c = core_of_future::core(f);
    put(c);
    c.word.begin_done();
    return f;
}

}  // namespace detail

template <class T = void>
class promise {
    using core = detail::future_core;

public:
    // Throws bad_alloc.
    explicit promise(executor& on = detail::executor_of_caller())
        : core_(detail::promise_block<T>::make(on, 1)) {}
    promise(promise&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)), given_(other.given_) {}
    promise& operator=(promise&& other) noexcept {
        if (this != &other) {
            end();
            core_ = std::exchange(other.core_, nullptr);
            given_ = other.given_;
        }
        return *this;
    }
    // Gives errc::broken_promise if the future has no outcome.
    ~promise() { end(); }

    // May be called once.
    future<T> get_future(std::source_location caller = std::source_location::current()) {
        if (core_ == nullptr || std::exchange(given_, true))
            fail("get_future of a promise that is empty or has given it", {}, caller);
        core_->keep();
        return future<T>(core_);
    }

    // An exception of T's constructor becomes the outcome.
    template <class... V>
        requires(std::is_void_v<T> && sizeof...(V) == 0) || std::constructible_from<T, V...>
    bool set_value(V&&... v) {
        if (!claim()) return false;
        if constexpr (std::is_reference_v<T>)
            detail::fulfil<T>(*core_, static_cast<T>(v)...);
        else
            detail::fulfil<T>(*core_, std::forward<V>(v)...);
        return true;
    }
    bool set_exception(std::exception_ptr e) {
        if (!claim()) return false;
        core_->put_exception(std::move(e));
        core_->publish_held();
        return true;
    }
    bool set_error(std::error_code e) {
        if (!claim()) return false;
        core_->put_error(e);
        core_->publish_held();
        return true;
    }
    bool set_stopped(stop_reason why = stop_reason::user) {
        if (!claim()) return false;
        core_->put_stopped(why);
        core_->publish_held();
        return true;
    }

    // Whether the future was stopped, so that no outcome is needed any more.
    bool stop_requested() const noexcept {
        return core_ != nullptr && core_->word.is_done() &&
               core_->kind == detail::outcome_kind::stopped;
    }
    bool valid() const noexcept { return core_ != nullptr; }

private:
    // False for an empty promise.
    bool claim() noexcept { return core_ != nullptr && core_->word.claim(); }
    void end() noexcept {
        if (core_ == nullptr) return;
        if (!core_->word.is_done()) set_error(errc::broken_promise);
        detail::release(std::exchange(core_, nullptr));
    }

    core* core_;
    bool given_ = false;
};

// A future that has its outcome.
template <class V>
future<std::decay_t<V>> make_ready_future(executor& on, V&& v) {
    using T = std::decay_t<V>;
    return detail::ended_future<T>(
        on, [&](detail::future_core& c) { detail::put_value<T>(c, std::forward<V>(v)); });
}
inline future<void> make_ready_future(executor& on) {
    return detail::ended_future<void>(on,
                                      [](detail::future_core& c) { detail::put_value<void>(c); });
}
template <class V>
    requires(!std::derived_from<std::decay_t<V>, executor>)
future<std::decay_t<V>> make_ready_future(V&& v) {
    return make_ready_future(detail::executor_of_caller(), std::forward<V>(v));
}
inline future<void> make_ready_future() { return make_ready_future(detail::executor_of_caller()); }

template <class T = void>
future<T> make_failed_future(std::error_code e, executor& on = detail::executor_of_caller()) {
    return detail::ended_future<T>(on, [&](detail::future_core& c) { c.put_error(e); });
}
template <class T = void>
future<T> make_failed_future(std::exception_ptr e, executor& on = detail::executor_of_caller()) {
    return detail::ended_future<T>(on,
                                   [&](detail::future_core& c) { c.put_exception(std::move(e)); });
}
template <class T = void>
future<T> make_stopped_future(stop_reason why = stop_reason::user,
                              executor& on = detail::executor_of_caller()) {
    return detail::ended_future<T>(on, [&](detail::future_core& c) { c.put_stopped(why); });
}

}  // namespace weft
