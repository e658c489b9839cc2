// coroutine<Out(In)>: a function that can be suspended at any depth, resumed, and killed.
//
// Its one idea: it is called like a function Out(In), over and over. resume(in) runs the body until
// it yields an Out or returns one; what yield returns to the body is the In of the next resume. The
// body is ordinary code on a stack of its own, so any function that it calls may yield. It is no
// thread: it runs when it is resumed, on whatever thread does so.
//
//        resume(a)                 resume(b)                resume(c)
//   caller ----> body(a)  yield(x) <---- ... returns b  return y <-- (or throws: resume throws)
//          <---------------- x      <---------------- ...      y, done()
//
// - The stack is taken at the first resume and given back when the body is over; LIFO, so the next
//   coroutine gets one that is still in the cache. A coroutine that never ran never had one.
// - Destroying or killing a suspended coroutine runs every destructor on its stack, innermost
// first.
//   A body that swallows the unwind with catch (...) is unwound again at its next yield; a noexcept
//   function in the way is reported before anything is destroyed.
// - The floating-point environment and the C++ exception state belong to the coroutine.
//
// Misuse (resume of a running, finished or empty coroutine; yield outside of one) ends the program
// with a message that names the coroutine and the place; try_resume returns an error instead.
//
// Limits: one thread at a time, but for try_resume, which any number of threads may call at once:
// one wins. A suspended coroutine may go on on another thread, as long as its body keeps no address
// of a thread_local. Out and In are values, references or void; In is at most one parameter.
//
//   weft::coroutine<int(int)> sum([](int n) {
//       for (int total = n;; ) total += weft::this_coroutine::yield<int(int)>(total);
//       return 0;
//   });
//   sum.resume(1);  // 1
//   sum.resume(2);  // 3
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/base/block_cache.hpp"
#include "weft/base/result.hpp"
#include "weft/coroutine/options.hpp"
#include "weft/coroutine/resume.hpp"
#include "weft/coroutine/typed_control.hpp"

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
    ~coroutine() { destroy(); }  // as kill(); what escapes from a body then ends the program

    // Runs the body until it yields or returns, and gives what it yielded or returned. Throws what
    // the body throws, and bad_alloc when there is no stack for the first resume, or on a shared
    // one no memory to copy out what lies on it: it is as it was then.
    WEFT_ALWAYS_INLINE output resume(std::source_location place = std::source_location::current())
        requires std::is_void_v<input>
    {
        return typed::of(detail::resume(control_, nullptr, place)).take_output();
    }
    template <class In = input>
        requires(!std::is_void_v<In>)
    WEFT_ALWAYS_INLINE output resume(std::type_identity_t<In> in,
                                     std::source_location place = std::source_location::current()) {
        if (control_ != nullptr) typed::of(control_).in.put(std::forward<In>(in));
        return typed::of(detail::resume(control_, nullptr, place)).take_output();
    }

    // The same, but an error when there is nothing to resume; safe against other threads' calls.
    // errc::operation_not_permitted: empty, running, done or killed; the value is not taken then.
    // It is taken by a move that must not throw, since another thread may be refused meanwhile.
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

    // Resumes, but calls f() on top of the suspended body, in place of the return from its yield:
    // what f returns is what the yield returns (for a void In: nothing), what f throws is thrown
    // there. On a coroutine that has not started f runs before the body, and its result is dropped
    // unless the body takes an In, which it then is.
    template <class F>
    output resume_with(F&& f, std::source_location place = std::source_location::current()) {
        if (control_ == nullptr) fail("resume_with of an empty coroutine", {}, place);
        detail::call_on_top<std::remove_reference_t<F>, typed> request(f, *control_, place);
        return typed::of(detail::resume(control_, request.get(), place)).take_output();
    }

    // Runs every destructor on its stack. False, and nothing else, when there is nothing to kill.
    bool kill(std::source_location place = std::source_location::current()) {
        return detail::kill(control_, place);
    }

    // Begins anew with another body, from any state but running: what was suspended is killed. Id,
    // name and options stay; private data is destroyed.
    template <class Body>
        requires detail::body_for<std::decay_t<Body>, Signature>
    void reset(Body&& body, std::source_location place = std::source_location::current()) {
        if (control_ == nullptr) fail("reset of an empty coroutine", {}, place);
        control_ = detail::remake<Signature>(control_, std::forward<Body>(body), place);
    }

    coroutine_state state() const noexcept {
        return control_ == nullptr ? coroutine_state::empty : control_->word.state();
    }
    // Whether it is over: there will be no more resume.
    bool done() const noexcept {
        return state() == coroutine_state::done || state() == coroutine_state::killed;
    }
    // Whether a resume is allowed.
    explicit operator bool() const noexcept {
        return state() == coroutine_state::ready || state() == coroutine_state::suspended;
    }

    std::uint64_t id() const noexcept { return control_ == nullptr ? 0 : control_->id.get(); }
    std::string_view name() const noexcept {
        const char* n = control_ == nullptr ? nullptr : control_->who().name;
        return n == nullptr ? std::string_view() : n;
    }

    // An object that belongs to the coroutine and is destroyed after its body. One at a time: a
    // second replaces the first.
    template <class T, class... Args>
    T& emplace_private(Args&&... args) {
        return detail::emplace_private<T>(*control_, std::forward<Args>(args)...);
    }
    // Null when there is none of this type.
    template <class T>
    T* private_data() const noexcept {
        return detail::private_data<T>(control_);
    }

    // Hints for who knows what it will resume soon: the first some eight entries ahead, the second,
    // when the first has arrived, some four.
    WEFT_ALWAYS_INLINE void prefetch() const noexcept { weft::prefetch(control_); }
    // What prefetch() fetches, for who keeps it nearer than the object.
    const void* prefetch_address() const noexcept { return control_; }
    WEFT_ALWAYS_INLINE void prefetch_stack() const noexcept {
        weft::prefetch(control_->stack_pointer());
    }

    // Gives the memory below the suspended stack's pointer back to the system. Bytes given back; 0
    // where nothing can be given.
    std::size_t trim_stack() noexcept { return detail::trim_stack(control_); }
    // How much of the stack was ever used, to one page; 0 while there is none.
    std::size_t stack_high_water_bytes() const noexcept { return detail::high_water(control_); }

    // Suspends the running coroutine, which must be one of this signature. As
    // this_coroutine::yield.
    static WEFT_ALWAYS_INLINE input
    yield(std::source_location place = std::source_location::current())
        requires std::is_void_v<output>
    {
        detail::control* c = detail::current_typed<Signature>(place);
        detail::yield(place);
        return typed::of(c).in.take();
    }
    template <class Value = output>
        requires(!std::is_void_v<Value>)
    static WEFT_ALWAYS_INLINE input
    yield(std::type_identity_t<Value> out,
          std::source_location place = std::source_location::current()) {
        detail::control* c = detail::current_typed<Signature>(place);
        typed::of(c).out.put(std::forward<Value>(out));
        detail::yield(place);
        return typed::of(c).in.take();
    }

    // Suspends the running coroutine and resumes this one in its place: its resumer becomes this
    // one's. Both are of this signature; `in` as for resume.
    void switch_to(std::source_location place = std::source_location::current())
        requires std::is_void_v<output> && std::is_void_v<input>
    {
        detail::hand_over(control_, place);
    }

private:
    WEFT_ALWAYS_INLINE void destroy() noexcept {
        if (control_ == nullptr) return;
        detail::destroy(std::exchange(control_, nullptr));
    }

    template <class Put>
    auto try_resume_with(Put put) -> result<output> {
        if (!detail::try_hold(control_)) return failure(std::errc::operation_not_permitted);
        put();
        if constexpr (std::is_void_v<output>) {
            detail::resume_held(control_);
            return {};
        } else {
            struct let_go {
                detail::control* c;
                ~let_go() {
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

// The id of the running coroutine; 0 outside of one.
inline std::uint64_t id() noexcept {
    const detail::control* c = detail::current();
    return c == nullptr ? 0 : c->id.get();
}

// Suspends the running coroutine, from any depth; returns when it is resumed.
WEFT_ALWAYS_INLINE void yield(std::source_location place = std::source_location::current()) {
    detail::yield(place);
}

// The same with values: yield<int(std::string)>(1) gives 1 to the resumer and returns the next
// resume's string. The signature must be the coroutine's own.
template <class Signature>
    requires std::is_void_v<typename coroutine<Signature>::output>
WEFT_ALWAYS_INLINE decltype(auto) yield(
    std::source_location place = std::source_location::current()) {
    return coroutine<Signature>::yield(place);
}
template <class Signature, class Value>
    requires(!std::is_void_v<typename coroutine<Signature>::output>)
WEFT_ALWAYS_INLINE decltype(auto) yield(
    Value&& out, std::source_location place = std::source_location::current()) {
    return coroutine<Signature>::yield(std::forward<Value>(out), place);
}

// The running coroutine's private object; null when there is none of this type.
template <class T>
T* private_data() noexcept {
    return detail::private_data<T>(detail::current());
}

}  // namespace this_coroutine
}  // namespace weft
