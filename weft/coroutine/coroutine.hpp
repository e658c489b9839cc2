// coroutine<Out(In)>: a function that can be suspended at any depth, resumed, and killed.
//
// Design: it is called like a function Out(In), many times. resume(in) runs the body until the body
// yields or returns an Out; inside the body, yield returns the In of the next resume. The body is
// ordinary code on a stack of its own, so any function that it calls may yield. A coroutine is not
// a thread: it runs when it is resumed, on the thread that resumes it.
//
//        resume(a)                 resume(b)                resume(c)
//   caller ----> body(a)  yield(x) <---- ... returns b  return y <-- (or throws: resume throws)
//          <---------------- x      <---------------- ...      y, done()
//
// - The stack is acquired at the first resume and released when the body is done, in LIFO order, so
//   the next coroutine gets a stack that is still in the cache. A coroutine that never ran never
//   had a stack.
// - Destroying or killing a suspended coroutine runs every destructor on its stack, the innermost
//   first. A body that swallows the unwind with catch (...) is unwound again at its next yield. A
//   noexcept function in the way is reported before anything is destroyed.
// - The floating-point environment and the C++ exception state belong to the coroutine.
//
// Misuse (resume of a running, finished or empty coroutine; yield outside a coroutine) aborts the
// program with a message that names the coroutine and the call site; try_resume returns an
// error instead.
//
// Limits: one thread at a time, except for try_resume, which any number of threads may call
// concurrently: one of them wins. A suspended coroutine may be resumed on another thread if its
// body keeps no address of a thread_local. Out and In are values, references or void; In is at most
// one parameter.
//
//   weft::coroutine<int(int)> sum([](int n) {
//       for (int total = n;; ) total += weft::this_coroutine::yield<int(int)>(total);
//       return 0;
//   });
//   sum.resume(1);  // 1
//   sum.resume(2);  // 3
#pragma once

#include <concepts>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/result.hpp"
#include "weft/coroutine/detail/resume.hpp"
#include "weft/coroutine/detail/typed_control.hpp"
#include "weft/coroutine/options.hpp"

namespace weft {

template <class Signature = void()>
class [[nodiscard]] coroutine {
    using typed = detail::typed_control<Signature>;

public:
    using output = typename typed::output;
    using input = typename typed::input;  // void when resume takes nothing

    constexpr coroutine() noexcept = default;  // empty

    // `body` is called as Out(In) on the coroutine's stack, at the first resume. Throws bad_alloc.
    template <class Body>
        requires(!std::same_as<std::remove_cvref_t<Body>, coroutine> &&
                 detail::body_for<std::decay_t<Body>, Signature>)
    explicit coroutine(Body&& body, const coroutine_options& options = {})
        : control_(detail::make<Signature>(std::forward<Body>(body), options)) {}

    coroutine(coroutine&& other) noexcept : control_(std::exchange(other.control_, nullptr)) {}
    coroutine& operator=(coroutine&& other) noexcept {
        if (this != &other) {
            destroy();
            control_ = std::exchange(other.control_, nullptr);
        }
        return *this;
    }
    ~coroutine() { destroy(); }  // as kill(); an exception that leaves a body here ends the program

    // Runs the body until it yields or returns, and returns that value. Throws what the body
    // throws. Throws bad_alloc if there is no stack for the first resume, or no memory to copy out
    // the live part that is on a shared stack; the coroutine is then unchanged.
    WEFT_ALWAYS_INLINE output resume(std::source_location caller = std::source_location::current())
        requires std::is_void_v<input>
    {
        return typed::of(detail::resume(control_, nullptr, caller)).take_output();
    }
    template <class In = input>
        requires(!std::is_void_v<In>)
    WEFT_ALWAYS_INLINE output
    resume(std::type_identity_t<In> in,
           std::source_location caller = std::source_location::current()) {
        if (control_ != nullptr) typed::of(control_).in.put(std::forward<In>(in));
        return typed::of(detail::resume(control_, nullptr, caller)).take_output();
    }

    // As resume(), but returns an error if there is nothing to resume; other threads may call it
    // concurrently. resource_unavailable_try_again: it runs, or another thread resumes it;
    // operation_not_permitted: empty, done or killed, now and later. The value is then not taken.
    // The move that takes the value must not throw, because other threads may be refused meanwhile.
    auto try_resume()
        requires std::is_void_v<input>
    {
        return try_resume_with([] {});
    }
    template <class In = input>
        requires(!std::is_void_v<In> && std::is_nothrow_move_constructible_v<In>)
    auto try_resume(std::type_identity_t<In> in) {
        return try_resume_with([&] { typed::of(control_).in.put(std::forward<In>(in)); });
    }

    // Resumes, and calls f() on top of the suspended body, before its yield returns: the yield
    // returns what f returns (for a void In: nothing) and throws what f throws. If the coroutine
    // has not started, f runs before the body; its result is the body's In, or is dropped if the
    // body takes none.
    template <class F>
    output resume_with(F&& f, std::source_location caller = std::source_location::current()) {
        if (control_ == nullptr) fail("resume_with of an empty coroutine", {}, caller);
        detail::call_on_top<std::remove_reference_t<F>, typed> request(f, *control_, caller);
        return typed::of(detail::resume(control_, request.get(), caller)).take_output();
    }

    // Runs every destructor on its stack. Returns false, without effect, if there is nothing to
    // kill.
    bool kill(std::source_location caller = std::source_location::current()) {
        return detail::kill(control_, caller);
    }

    // Restarts with another body, in any state but running: a suspended body is killed. Id, name
    // and options stay; private data is destroyed.
    template <class Body>
        requires detail::body_for<std::decay_t<Body>, Signature>
    void reset(Body&& body, std::source_location caller = std::source_location::current()) {
        if (control_ == nullptr) fail("reset of an empty coroutine", {}, caller);
        control_ = detail::remake<Signature>(control_, std::forward<Body>(body), caller);
    }

    coroutine_state state() const noexcept {
        return control_ == nullptr ? coroutine_state::empty : control_->word.state();
    }
    // Whether it will never run again.
    bool done() const noexcept {
        return state() == coroutine_state::done || state() == coroutine_state::killed;
    }
    // Whether a resume is allowed.
    explicit operator bool() const noexcept {
        return state() == coroutine_state::ready || state() == coroutine_state::suspended;
    }

    std::uint64_t id() const noexcept { return control_ == nullptr ? 0 : control_->id.get(); }
    std::string_view name() const noexcept {
        const char* n = control_ == nullptr ? nullptr : control_->info().name;
        return n == nullptr ? std::string_view() : n;
    }

    // Makes an object that the coroutine owns and destroys after its body. One at a time: a second
    // replaces the first.
    template <class T, class... Args>
    T& emplace_private(Args&&... args) {
        return detail::emplace_private<T>(*control_, std::forward<Args>(args)...);
    }
    // Null if there is none of this type.
    template <class T>
    T* private_data() const noexcept {
        return detail::private_data<T>(control_);
    }

    // Hints for a caller that knows which coroutines it will resume soon: prefetch() about eight
    // entries ahead, prefetch_stack(), once the first prefetch has arrived, about four.
    WEFT_ALWAYS_INLINE void prefetch() const noexcept { weft::prefetch(control_); }
    // The address that prefetch() fetches, for a caller that stores it closer than the object.
    const void* prefetch_address() const noexcept { return control_; }
    WEFT_ALWAYS_INLINE void prefetch_stack() const noexcept {
        weft::prefetch(control_->stack_pointer());
    }

    // Returns the memory below the suspended stack's pointer to the system. Returns the number of
    // bytes released; 0 if none can be.
    std::size_t trim_stack() noexcept { return detail::trim_stack(control_); }
    // How much of the stack was ever used, to one page; 0 while there is no stack.
    std::size_t stack_high_water_bytes() const noexcept { return detail::high_water(control_); }

    // Suspends the running coroutine, which must have this signature. As this_coroutine::yield.
    static WEFT_ALWAYS_INLINE input
    yield(std::source_location caller = std::source_location::current())
        requires std::is_void_v<output>
    {
        detail::control* c = detail::current_typed<Signature>(caller);
        detail::yield(caller);
        return typed::of(c).in.take();
    }
    template <class Value = output>
        requires(!std::is_void_v<Value>)
    static WEFT_ALWAYS_INLINE input
    yield(std::type_identity_t<Value> out,
          std::source_location caller = std::source_location::current()) {
        detail::control* c = detail::current_typed<Signature>(caller);
        typed::of(c).out.put(std::forward<Value>(out));
        detail::yield(caller);
        return typed::of(c).in.take();
    }

    // Suspends the running coroutine and resumes this one instead, which takes over its resumer.
    // Both have the signature void().
    void switch_to(std::source_location caller = std::source_location::current())
        requires std::is_void_v<output> && std::is_void_v<input>
    {
        detail::hand_over(control_, caller);
    }

private:
    WEFT_ALWAYS_INLINE void destroy() noexcept {
        if (control_ == nullptr) return;
        detail::destroy(std::exchange(control_, nullptr));
    }

    template <class Put>
    auto try_resume_with(Put put) -> result<output> {
        if (!detail::try_hold(control_)) return failure(detail::why_not_held(control_));
        put();
        if constexpr (std::is_void_v<output>) {
            detail::resume_held(control_);
            return {};
        } else {
            struct end_hold {
                detail::control* c;
                ~end_hold() {
                    if (c->word.state() == coroutine_state::running)
                        c->word.set(coroutine_state::suspended);
                }
            } then{detail::resume_held_for_value(control_)};
            return typed::of(then.c).take_output();
        }
    }

    detail::control* control_ = nullptr;
};

template <class Body>
coroutine(Body) -> coroutine<void()>;

namespace this_coroutine {

// Whether the caller runs in a coroutine.
inline bool exists() noexcept { return detail::current() != nullptr; }

// The id of the running coroutine; 0 outside a coroutine.
inline std::uint64_t id() noexcept {
    const detail::control* c = detail::current();
    return c == nullptr ? 0 : c->id.get();
}

// Suspends the running coroutine, from any depth; returns when it is resumed.
WEFT_ALWAYS_INLINE void yield(std::source_location caller = std::source_location::current()) {
    detail::yield(caller);
}

// The same with values: yield<int(std::string)>(1) gives 1 to the resumer and returns the next
// resume's string. The signature must be the coroutine's own.
template <class Signature>
    requires std::is_void_v<typename coroutine<Signature>::output>
WEFT_ALWAYS_INLINE decltype(auto) yield(
    std::source_location caller = std::source_location::current()) {
    return coroutine<Signature>::yield(caller);
}
template <class Signature, class Value>
    requires(!std::is_void_v<typename coroutine<Signature>::output>)
WEFT_ALWAYS_INLINE decltype(auto) yield(
    Value&& out, std::source_location caller = std::source_location::current()) {
    return coroutine<Signature>::yield(std::forward<Value>(out), caller);
}

// The running coroutine's private object; null if there is none of this type.
template <class T>
T* private_data() noexcept {
    return detail::private_data<T>(detail::current());
}

}  // namespace this_coroutine
}  // namespace weft
