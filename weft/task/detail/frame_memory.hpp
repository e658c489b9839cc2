// frame_memory: where the frames of coroutines come from.
//
// A promise that derives from frame_memory takes its frames from the block_cache, so that a frame
// costs two nanoseconds. If a coroutine's parameters begin with (std::allocator_arg, a, ...), the
// frame comes from `a` instead; the object of a member function or lambda does not count.
// Design: the type of the promise decides, and coroutine_traits chooses that type by the
// parameters. A coroutine without an allocator carries nothing for this choice.
//
//   | frame | (padding) | copy of the allocator, unless it is stateless |
//
// An allocator that throws makes the call of the coroutine throw; its parameters are destroyed.
#pragma once

#include <cstddef>
#include <tuple>  // std::allocator_arg_t, at a fraction of <memory>
#include <type_traits>
#include <utility>

#include "weft/base/detail/block_cache.hpp"

namespace weft::detail {

struct frame_memory {
    static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes);
    }
};

template <class...>
struct types {};

// A list without its first type; the result is never the same list.
template <class... Args>
struct all_but_first {
    using type = types<types<>>;
};
template <class First, class... Rest>
struct all_but_first<First, Rest...> {
    using type = types<Rest...>;
};

// What std::allocator_traits says of an allocator, as far as a frame needs it: A for objects of U,
// and whether any two of A are equal.
template <class A, class U>
struct rebound;
template <template <class, class...> class A, class T, class... Rest, class U>
    requires(!requires { typename A<T, Rest...>::template rebind<U>::other; })
struct rebound<A<T, Rest...>, U> {
    using type = A<U, Rest...>;
};
template <class A, class U>
    requires requires { typename A::template rebind<U>::other; }
struct rebound<A, U> {
    using type = typename A::template rebind<U>::other;
};
template <class A, class U>
using rebound_t = typename rebound<A, U>::type;

// What allocator_traits says, without <memory>. C++20 deprecates the member of std::allocator, and
// Clang warns of it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
template <class A>
constexpr bool always_equal() {
    if constexpr (requires { A::is_always_equal::value; })
        return A::is_always_equal::value;
    else
        return std::is_empty_v<A>;
}
#pragma GCC diagnostic pop

template <class Promise, class A, class Args, class Rest>
struct promise_with_allocator;

// Promise with frames from A, for a coroutine with the parameters Args. The class has no members of
// its own, so that the frame's address follows from the promise's address as for Promise itself.
// Its operator new is no template, because GCC 12 would warn of a missing operator delete. Two
// overloads are needed, because Clang does not pass the object of a lambda.
template <class Promise, class A, class... Args, class... Rest>
struct promise_with_allocator<Promise, A, types<Args...>, types<Rest...>> : Promise {
    // A frame may hold objects aligned to a cache line, as a frame from the block_cache may.
    struct alignas(cache_line_bytes) unit {
        std::byte bytes[cache_line_bytes];
    };
    using allocator = rebound_t<A, unit>;
    static constexpr bool stateless =
        always_equal<allocator>() && std::is_default_constructible_v<allocator>;

    static void* operator new(std::size_t bytes, const Args&... args) {
        return acquire(bytes, allocator_among(args...));
    }
    static void* operator new(std::size_t bytes, const Rest&... args) {
        return acquire(bytes, allocator_among(args...));
    }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        if constexpr (stateless) {
            allocator a;
            a.deallocate(static_cast<unit*>(p), unit_count(bytes));
        } else {
            allocator& stored = stored_allocator(p, bytes);
            allocator a = std::move(stored);
            stored.~allocator();
            a.deallocate(static_cast<unit*>(p), unit_count(bytes));
        }
    }

private:
    template <class... Others>
    static allocator allocator_among(const std::allocator_arg_t&, const A& a, const Others&...) {
        return allocator(a);
    }
    template <class Self, class... Others>
    static allocator allocator_among(const Self&, const std::allocator_arg_t&, const A& a,
                                     const Others&...) {
        return allocator(a);
    }
    template <class... Others>
    static allocator allocator_among(const Others&...) {  // A is the default
        return allocator();
    }

    static constexpr std::size_t allocator_offset(std::size_t bytes) {
        return (bytes + alignof(allocator) - 1) / alignof(allocator) * alignof(allocator);
    }
    static constexpr std::size_t unit_count(std::size_t bytes) {
        if constexpr (!stateless) bytes = allocator_offset(bytes) + sizeof(allocator);
        return (bytes + sizeof(unit) - 1) / sizeof(unit);
    }
    static allocator& stored_allocator(void* p, std::size_t bytes) {
        return *reinterpret_cast<allocator*>(static_cast<std::byte*>(p) + allocator_offset(bytes));
    }
    static void* acquire(std::size_t bytes, allocator a) {
        static_assert(std::is_same_v<decltype(a.allocate(1)), unit*>,
                      "a frame needs an allocator with plain pointers");
        void* p = a.allocate(unit_count(bytes));
        if constexpr (!stateless)
            ::new (static_cast<void*>(&stored_allocator(p, bytes))) allocator(std::move(a));
        return p;
    }
};

// The allocator among the parameters of a coroutine, or Default.
template <class Default, class... Args>
struct frame_allocator {
    using type = Default;
};
template <class Default, class A, class... Rest>
struct frame_allocator<Default, std::allocator_arg_t, A, Rest...> {
    using type = A;
};
template <class Default, class Self, class A, class... Rest>
    requires(!std::is_same_v<Self, std::allocator_arg_t>)
struct frame_allocator<Default, Self, std::allocator_arg_t, A, Rest...> {
    using type = A;
};

// The type for coroutine_traits<..., Args...>::promise_type. Default: void, or the allocator of
// the coroutines that name none.
template <class Promise, class A, class... Args>
struct promise_from {
    using type =
        promise_with_allocator<Promise, A, types<Args...>, typename all_but_first<Args...>::type>;
    static_assert(sizeof(type) == sizeof(Promise) && alignof(type) == alignof(Promise));
};
template <class Promise, class... Args>
struct promise_from<Promise, void, Args...> {
    using type = Promise;
};
template <class Promise, class Default, class... Args>
using promise_for =
    typename promise_from<Promise,
                          typename frame_allocator<Default, std::remove_cvref_t<Args>...>::type,
                          std::remove_cvref_t<Args>...>::type;

}  // namespace weft::detail
