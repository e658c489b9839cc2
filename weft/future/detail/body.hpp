// body: the parts of a continuation: where its function runs, and what becomes of the result.
//
// A Way is where a function runs: plain, on the executor's own stack, or in a fiber, where the
// function may wait. A Body calls the function and stores the result: a Body is called with the
// core and the argument, and returns true when the outcome is stored, false when the core forwards
// the outcome of another core.
#pragma once

#include <concepts>
#include <exception>
#include <utility>

#include "weft/base/detail/invoke.hpp"
#include "weft/base/errc.hpp"
#include "weft/future/detail/in_fiber.hpp"
#include "weft/future/detail/outcome.hpp"
#include "weft/wait/awaitable.hpp"

namespace weft {

template <class T>
class future;

namespace detail {

// Runs a function that must not wait. Block has turn(core), which throws what the function throws,
// and ended(core), which is called when the core has its outcome after that. A ticket does what may
// fail before a core exists.
struct plain_way {
    struct ticket {
        ticket() noexcept {}
    };
    template <class Block>
    static void take_turn(frame* f) noexcept {
        future_core& c = future_core::of(f);
#if WEFT_EXCEPTIONS
        try {
            Block::turn(c);
            return;
        } catch (const stopped& s) {
            c.put_stopped(s.reason);
        } catch (...) {
            c.put_exception(std::current_exception());
        }
        Block::ended(&c);
#else
        Block::turn(c);
#endif
    }
    template <class Block>
    static void prepare(future_core&, ticket&) noexcept {}
    static void drop(future_core&) noexcept {}
};

// Runs a function that may wait, with the bindings that are in force where the function is given.
struct fiber_way {
    using ticket = borrowed_target;
    template <class Block>
    static void take_turn(frame* f) noexcept {
        borrowed_target::take_turn(f);
    }
    template <class Block>
    static constexpr borrowed_turn turn_of{Block::turn, Block::ended, Block::refused};
    template <class Block>
    static void prepare(future_core& c, ticket& t) noexcept {
        c.resume = borrowed_target::take_turn;
        t.give(c, turn_of<Block>);
    }
    static void drop(future_core& c) noexcept { borrowed_target::drop(c); }
};

// Passes the value by value, by reference, moved, or not at all, as the function takes it.
template <class T, class F>
inline constexpr bool takes_reference = std::invocable<F&, std::add_lvalue_reference_t<T>>;
template <class F>
inline constexpr bool takes_reference<void, F> = false;
template <class T, class F>
inline constexpr bool takes_value =
    std::invocable<F&, T> || takes_reference<T, F> || std::invocable<F&>;
template <class F>
inline constexpr bool takes_value<void, F> = std::invocable<F&>;

template <class T, class F>
decltype(auto) call_with(F& f, [[maybe_unused]] stored_t<T>& v) {
    if constexpr (std::is_void_v<T>)
        return detail::invoke(f);
    else if constexpr (std::invocable<F&, T>)
        return detail::invoke(f, moved<T>(v));
    else if constexpr (takes_reference<T, F>)
        return detail::invoke(f, seen<T>(v));
    else
        return detail::invoke(f);
}
template <class T, class F>
using call_result_t = decltype(call_with<T>(std::declval<F&>(), std::declval<stored_t<T>&>()));

// Returns its argument.
template <class T>
struct same {
    T operator()(T v) const { return std::forward<T>(v); }
};
template <>
struct same<void> {
    void operator()() const noexcept {}
};

template <class T>
inline constexpr bool is_future = false;
template <class T>
inline constexpr bool is_future<future<T>> = true;

template <class T>
struct unwrapped {
    using type = T;
};
template <class T>
struct unwrapped<future<T>> {
    using type = T;
};
template <class T>
using unwrapped_t = typename unwrapped<T>::type;

template <class T>
void take_forwarded(frame* f) noexcept {
    future_core& c = future_core::of(f);
    future_core& inner = end_forwarding(c);
    move_outcome<T>(inner, c);
    release(&inner);
    c.finish();
}
// Makes inner's outcome the outcome of c, and takes the reference to inner. False: inner has no
// outcome yet.
template <class T>
bool adopt(future_core& c, future_core* inner) noexcept {
    if (inner == nullptr) {
        c.put_error(errc::broken_promise);
        return true;
    }
    if (!inner->word.is_done()) {
        forward(c, *inner, take_forwarded<T>);
        return false;
    }
    move_outcome<T>(*inner, c);
    release(inner);
    return true;
}

// The core of a future, and the reference to it.
struct core_of_future {
    template <class Future>
    static future_core& core(Future& f) noexcept {
        return *f.core_;
    }
    // Aborts if the future is empty.
    template <class Future>
    static future_core& checked(Future& f, std::source_location caller) noexcept {
        return f.checked(caller);
    }
    template <class Future>
    static future_core* take(Future& f) noexcept {
        return std::exchange(f.core_, nullptr);
    }
};

// -- bodies -----------------------------------------------------------------------------------

// The outcome is what f returns; if f returns a future, the outcome of that future.
template <class T, class F>
struct then_body {
    using returned = call_result_t<T, F>;
    using result = unwrapped_t<returned>;
    static_assert(runs_when_called<returned>());
    static constexpr bool takes_failure = false;
    F f;

    bool operator()(future_core& c, stored_t<T>& v) {
        if constexpr (is_future<returned>) {
            returned inner = call_with<T>(f, v);
            return adopt<result>(c, core_of_future::take(inner));
        } else {
            put_result<result>(c, [&]() -> decltype(auto) { return call_with<T>(f, v); });
            return true;
        }
    }
};

// As above for a function that takes the future itself, whatever its outcome.
template <class Future, class F>
struct after_body {
    using returned = std::invoke_result_t<F&, Future>;
    using result = unwrapped_t<returned>;
    static_assert(runs_when_called<returned>());
    static constexpr bool takes_failure = true;
    F f;

    bool operator()(future_core& c, Future&& ended) {
        if constexpr (is_future<returned>) {
            returned inner = detail::invoke(f, std::move(ended));
            return adopt<result>(c, core_of_future::take(inner));
        } else {
            put_result<result>(
                c, [&]() -> decltype(auto) { return detail::invoke(f, std::move(ended)); });
            return true;
        }
    }
};

// The outcome is the value itself, unless f(value) says that the value is not needed any more.
template <class T, class F>
struct cancel_body {
    using result = T;
    static constexpr bool takes_failure = false;
    F f;

    bool operator()(future_core& c, stored_t<T>& v) {
        bool unwanted;
        if constexpr (takes_reference<T, F>)
            unwanted = detail::invoke(f, seen<T>(v));
        else
            unwanted = detail::invoke(f);
        if (unwanted)
            c.put_stopped(stop_reason::user);
        else
            put_value<T>(c, moved<T>(v));
        return true;
    }
};

// The outcome if no stack can be had for a function.
inline void put_no_memory(future_core& c) noexcept {
    c.put_error(std::make_error_code(std::errc::not_enough_memory));
}

}  // namespace detail
}  // namespace weft
