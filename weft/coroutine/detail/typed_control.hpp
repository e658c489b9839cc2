// typed_control: the typed shell around control: the values in transit, and the body.
//
//     control | out | in | body          one block of block_cache, 128 bytes for a body of one word
//
// Values travel in the control block and not on either stack, so a shared stack may be copied away
// between the two ends.
#pragma once

#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/invoke.hpp"
#include "weft/coroutine/detail/entry.hpp"
#include "weft/coroutine/detail/extras.hpp"
#include "weft/coroutine/detail/kill.hpp"
#include "weft/coroutine/detail/life.hpp"
#include "weft/coroutine/detail/resume.hpp"
#include "weft/coroutine/detail/shared_slot.hpp"
#include "weft/coroutine/options.hpp"

namespace weft::detail {

// Storage for one value of type T in transit. The two directions are different types, so that two
// empty passages take no room.
enum class way : bool { out, in };

template <class T, way>
struct passage {
    std::optional<T> value;

    template <class U>
    void put(U&& u) {
        value.emplace(std::forward<U>(u));
    }
    T take() {
        T taken = std::move(*value);
        value.reset();
        return taken;
    }
    bool full() const noexcept { return value.has_value(); }
};
template <class T, way w>
struct passage<T&, w> {
    T* value = nullptr;

    void put(T& u) noexcept { value = &u; }
    T& take() noexcept { return *std::exchange(value, nullptr); }
    bool full() const noexcept { return value != nullptr; }
};
template <way w>
struct passage<void, w> {
    void take() const noexcept {}
    bool full() const noexcept { return true; }
};

template <class Signature>
inline constexpr char signature_tag = 0;

template <class Out, class In>
struct typed_control_of : control {
    using output = Out;
    using input = In;

    [[no_unique_address]] passage<Out, way::out> out;
    [[no_unique_address]] passage<In, way::in> in;

    using control::control;
    static typed_control_of& of(control* c) noexcept { return *static_cast<typed_control_of*>(c); }

    WEFT_ALWAYS_INLINE Out take_output() {
        if (!out.full()) [[unlikely]]
            fail("a coroutine yielded without the value of its signature", info());
        return out.take();
    }
};

template <class Signature>
struct signature_parts;
template <class Out>
struct signature_parts<Out()> {
    using control_type = typed_control_of<Out, void>;
};
template <class Out, class In>
struct signature_parts<Out(In)> {
    using control_type = typed_control_of<Out, In>;
};
template <class Signature>
using typed_control = typename signature_parts<Signature>::control_type;

template <class Body, class Signature>
inline constexpr bool is_body_for = false;
template <class Body, class Out>
inline constexpr bool is_body_for<Body, Out()> = std::is_invocable_r_v<Out, Body&>;
template <class Body, class Out, class In>
inline constexpr bool is_body_for<Body, Out(In)> = std::is_invocable_r_v<Out, Body&, In>;
template <class Body, class Signature>
concept body_for = is_body_for<Body, Signature>;

template <class Body, class Signature>
struct body_block : typed_control<Signature> {
    using typed = typed_control<Signature>;

    union {
        Body body;  // until run has moved it out, or destroy_body was called
    };

    template <class B>
    body_block(B&& b, stack_allocator_ref from) : typed(verbs, from), body(std::forward<B>(b)) {}
    ~body_block() {}

    static body_block& of(control* c) noexcept { return *static_cast<body_block*>(c); }

    static void enter(context* from, context* self, void* word) {
        run(of(&begin_body(from, self, word)));
        end_body();
    }
    // The body moves to its stack, so that its captures are beside its locals; one that is packed
    // for the block moves there unpacked.
    static WEFT_ALWAYS_INLINE void run(body_block& self) {
        auto on_stack = self.move_out();
        if constexpr (!std::is_void_v<typename typed::output>)
            self.out.put(call(self, on_stack));
        else
            call(self, on_stack);
    }
    WEFT_ALWAYS_INLINE auto move_out() {
        struct guard {
            Body& moved_from;
            ~guard() { moved_from.~Body(); }
        } destroy{body};
        if constexpr (requires { body.unpacked(); })
            return body.unpacked();
        else
            return Body(std::move(body));
    }
    template <class F>
    static WEFT_ALWAYS_INLINE typename typed::output call(body_block& self, F& on_stack) {
        if constexpr (std::is_void_v<typename typed::input>)
            return detail::invoke(on_stack);
        else
            return detail::invoke(on_stack, self.in.take());
    }
    // Whether releasing the block is all that is left to do for a coroutine that is done.
    static constexpr bool plain = std::is_trivially_destructible_v<decltype(typed::out)> &&
                                  std::is_trivially_destructible_v<decltype(typed::in)> &&
                                  alignof(body_block) <= block_cache::alignment;

    static void destroy_body(control* c) noexcept { of(c).body.~Body(); }
    static void release(control* c) noexcept {
        body_block* self = &of(c);
        self->~body_block();
        block_cache::release(self, sizeof(body_block), alignof(body_block));
    }

    static constexpr body_verbs verbs = {{enter, escaped_from_body, left_body},
                                         destroy_body,
                                         release,
                                         &signature_tag<Signature>,
                                         plain ? sizeof(body_block) : 0};
};

static_assert(WEFT_MODEL || WEFT_BACKEND_UCONTEXT || WEFT_ASAN || WEFT_TSAN || !WEFT_X86_64 ||
              WEFT_WINDOWS || sizeof(body_block<void (*)(), void()>) == 2 * cache_line_bytes);

// Aborts unless the running coroutine has this signature.
template <class Signature>
WEFT_ALWAYS_INLINE control* current_typed(std::source_location caller) {
    control* c = current();
    if (c == nullptr) [[unlikely]]
        fail_outside(caller);
    if (c->verbs->signature != &signature_tag<Signature>) [[unlikely]]
        fail("a yield whose signature is not that of its coroutine", c->info(), caller);
    return c;
}

// Makes a block with its body in it; releases the block if the body's copy throws.
template <class Signature, class B>
WEFT_ALWAYS_INLINE control* make_block(B&& body, stack_allocator_ref from) {
    using block = body_block<std::decay_t<B>, Signature>;
    void* memory = block_cache::acquire(sizeof(block), alignof(block));
    struct guard {
        void* memory;
        ~guard() {
            if (memory != nullptr) block_cache::release(memory, sizeof(block), alignof(block));
        }
    } unless_made{memory};
    control* c = new (memory) block(std::forward<B>(body), from);
    unless_made.memory = nullptr;
    return c;
}

template <class Signature, class B>
WEFT_ALWAYS_INLINE control* make(B&& body, const coroutine_options& options) {
    const stack_allocator_ref from =
        options.stack ? options.stack : default_stacks(options.stack_bytes);
    control* c = make_block<Signature>(std::forward<B>(body), from);
    constexpr auto ready = state_word::of(coroutine_state::ready);
    c->word.hold(ready | (options.fp == fp_environment::own) * own_fp);
    if ((reinterpret_cast<std::uintptr_t>(options.shared) | options.name.size()) != 0) [[unlikely]]
        adopt_options(*c, options);
    return c;
}

WEFT_ALWAYS_INLINE void destroy(control* c) noexcept {
    constexpr auto done = state_word::of(coroutine_state::done);
    if ((c->word.load() & ~own_fp) == done && c->extras == nullptr && !c->error &&
        c->verbs->plain_bytes != 0) [[likely]]
        return block_cache::release(c, c->verbs->plain_bytes);
    destroy_slowly(c);
    c->verbs->release(c);
}

// Gives a coroutine that is not running another body: the fields that stay move to the new block.
template <class Signature, class B>
control* remake(control* old, B&& body, std::source_location caller) {
    if (old->word.state() == coroutine_state::running)
        fail("reset of a running coroutine", old->info(), caller);
    kill(old, caller);
    destroy_data(*old);
    control* c = make_block<Signature>(std::forward<B>(body), {});
    move_identity(*old, *c);
    old->verbs->release(old);
    return c;
}

// A function object called on top of a suspended coroutine; see coroutine::resume_with.
template <class F, class Typed>
struct call_on_top : on_top {
    F* f;

    call_on_top(F& function, control& c, std::source_location caller) : on_top{call}, f(&function) {
        refuse_shared_frame(c, caller);
    }
    on_top* get() noexcept { return this; }

    static void call(on_top& request, control& self, context*) {
        F& function = *static_cast<call_on_top&>(request).f;
        using input = typename Typed::input;
        if constexpr (std::is_void_v<input>)
            static_cast<void>(detail::invoke(function));
        else
            Typed::of(&self).in.put(detail::invoke(function));
    }
};

template <class T>
inline constexpr char data_tag = 0;

template <class T, class... Args>
T& emplace_private(control& c, Args&&... args) {
    coroutine_extras& e = extras_of(c);
    T* object = new T(std::forward<Args>(args)...);
    destroy_data(c);
    e.data = object;
    e.data_type = &data_tag<T>;
    e.destroy_data = [](void* p) noexcept { delete static_cast<T*>(p); };
    return *object;
}

template <class T>
T* private_data(const control* c) noexcept {
    if (c == nullptr || c->extras == nullptr || c->extras->data_type != &data_tag<T>)
        return nullptr;
    return static_cast<T*>(c->extras->data);
}

}  // namespace weft::detail
