// fiber_body: what the coroutine of a fiber runs: the user's function, and the end of the fiber's
// locals.
//
// Design: a function of more than a word waits for its first turn in a block of its own, from which
// it moves to the fiber's stack. So the block of the coroutine, which stays, is two cache lines
// whatever the function has captured:
//
//      before the first turn                     from then on
//      +----------+----+     +----------+       +----------+----+     +----------+
//      | control  | at ----> | function |       | control  |    |     | function | on the stack
//      +----------+----+     +----------+       +----------+----+     +----------+
//
// A kill of a fiber that has not begun destroys the function where it is.
//
//   core.set_body(detail::fiber_body<F>(std::move(f)));
//
// Model: none, it is one flow's.
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/invoke.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/base/platform.hpp"
#include "weft/fiber/detail/fiber_core.hpp"

namespace weft::detail {

// An F in a block of its own.
template <class F>
class function_apart {
public:
    template <class G>
    explicit function_apart(G&& f) : at_(make(std::forward<G>(f))) {}
    function_apart(function_apart&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
    function_apart& operator=(function_apart&&) = delete;
    WEFT_ALWAYS_INLINE ~function_apart() {
        if (at_ == nullptr) return;
        detail::destroy_at(at_);
        block_cache::release(at_, sizeof(F), alignof(F));
    }
    F& get() noexcept { return *at_; }

private:
    template <class G>
    static F* make(G&& f) {
        struct guard {
            void* memory;
            ~guard() {
                if (memory != nullptr) block_cache::release(memory, sizeof(F), alignof(F));
            }
        } unless_made{block_cache::acquire(sizeof(F), alignof(F))};
        F* const made = new (unless_made.memory) F(std::forward<G>(f));
        unless_made.memory = nullptr;
        return made;
    }

    F* at_;
};

// An F that fits into the coroutine's block.
template <class F>
class function_within {
public:
    template <class G>
    explicit function_within(G&& f) : function_(std::forward<G>(f)) {}
    F& get() noexcept { return function_; }

private:
    F function_;
};

// On the fiber's stack. At its end, also by a kill, the fiber's locals are destroyed there.
template <class F>
struct running_function {
    F function;

    WEFT_ALWAYS_INLINE void operator()() {
        struct at_end {
            fiber_core& c;
            ~at_end() {
                if (c.locals != nullptr) destroy_locals(c);
            }
        } const at{fiber_core::of(*current_flow())};
        detail::invoke(std::move(function));
    }
};

template <class F>
class fiber_body {
    static constexpr bool fits = sizeof(F) <= sizeof(void*) && alignof(F) <= alignof(void*);

public:
    template <class G>
    explicit fiber_body(G&& f) : packed_(std::forward<G>(f)) {}

    // By the coroutine's first turn, which destroys this next.
    WEFT_ALWAYS_INLINE running_function<F> unpacked() { return {std::move(packed_.get())}; }
    void operator()();  // it is called unpacked

private:
    std::conditional_t<fits, function_within<F>, function_apart<F>> packed_;
};

}  // namespace weft::detail
