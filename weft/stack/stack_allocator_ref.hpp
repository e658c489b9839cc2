// stack_allocator_ref: a reference to any stack_allocator, two words wide.
//
// Design: a coroutine need not be a template over the allocator of its stack. An empty reference
// has no stacks.
//
// Limits: the reference does not own the allocator, which must outlive it and every stack acquired
// through it.
//
//   weft::mapped_stack stacks(64 * 1024);
//   weft::stack_allocator_ref from = stacks;
//   weft::stack s = from.acquire();
#pragma once

#include <cstddef>
#include <type_traits>

#include "weft/base/detail/lifetime.hpp"
#include "weft/stack/stack.hpp"

namespace weft {

class stack_allocator_ref {
public:
    // The functions of an allocator, without its type.
    struct verbs {
        stack (*acquire)(void*) noexcept;
        void (*release)(void*, stack) noexcept;
        std::size_t (*stack_bytes)(const void*) noexcept;
    };

    constexpr stack_allocator_ref() noexcept = default;

    // From any allocator; an allocator that wraps another object returns that by source().
    template <class A>
        requires(stack_allocator<A> && !std::same_as<std::remove_cv_t<A>, stack_allocator_ref>)
    constexpr stack_allocator_ref(A& a) noexcept {
        if constexpr (requires { a.source(); })
            *this = a.source();
        else
            *this = stack_allocator_ref(detail::address_of(a), verbs_of<A>);
    }

    constexpr stack_allocator_ref(void* allocator, const verbs& v) noexcept
        : allocator_(allocator), verbs_(&v) {}

    // As the allocator: an empty stack if there are no more.
    stack acquire() const noexcept { return detail::in_registers(verbs_->acquire(allocator_)); }

    // Precondition: s came from this allocator and is not empty.
    void release(stack s) const noexcept { verbs_->release(allocator_, s); }

    std::size_t stack_bytes() const noexcept { return verbs_->stack_bytes(allocator_); }

    // The allocator if its functions are `v`, else null: for a caller that can call it directly.
    void* allocator_by(const verbs& v) const noexcept {
        return verbs_ == &v ? allocator_ : nullptr;
    }

    constexpr explicit operator bool() const noexcept { return allocator_ != nullptr; }
    friend constexpr bool operator==(stack_allocator_ref a, stack_allocator_ref b) noexcept {
        return a.allocator_ == b.allocator_;
    }

private:
    template <class A>
    static constexpr verbs verbs_of = {
        [](void* a) noexcept { return static_cast<A*>(a)->acquire(); },
        [](void* a, stack s) noexcept { static_cast<A*>(a)->release(s); },
        [](const void* a) noexcept {
            return static_cast<std::size_t>(static_cast<const A*>(a)->stack_bytes());
        },
    };
    static constexpr verbs nothing = {
        [](void*) noexcept { return stack{}; },
        [](void*, stack) noexcept {},
        [](const void*) noexcept { return std::size_t{0}; },
    };

    void* allocator_ = nullptr;
    const verbs* verbs_ = &nothing;
};

}  // namespace weft
