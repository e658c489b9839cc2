// generator<Ref>: a C++20 coroutine that is a range and computes each element on demand.
//
// Design: shaped like C++23's std::generator: an input range and a view, to be consumed once, by a
// range-for or a pipeline. generator<T> yields T's that may be moved from, generator<T&> and
// generator<const T&> references; generator<Ref, Val> names the value type of a Ref that is a
// proxy.
//
// An element of a nested generator costs the same at any depth. An exception of the body comes out
// of begin() or ++; an exception of an inner generator comes out of the co_yield first. Destroying
// a generator destroys its frame and the frames nested in it, innermost first, and takes stack in
// proportion to their number.
//
// Limits: a yielded element is a reference into the frame, valid until the next ++. begin() is
// called once, on a generator that is not empty, and a generator that is passed to elements_of has
// not begun; both are checked. A generator cannot co_await. Frames come from a per-thread cache;
// std::allocator_arg works as for task, and Alloc is the allocator of calls that pass none.
//
//   weft::generator<int> count(int from) { for (;;) co_yield from++; }
//   for (int n : count(1) | std::views::take(3)) use(n);         // 1 2 3
//
//   weft::generator<const node&> in_order(const node& n) {
//       if (n.left) co_yield weft::elements_of(in_order(*n.left));
//       co_yield n;
//       if (n.right) co_yield weft::elements_of(in_order(*n.right));
//   }
#pragma once

#include <coroutine>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/task/detail/generator_promise.hpp"
#include "weft/task/elements_of.hpp"

namespace weft {

template <class Ref, class Val, class Alloc>
class [[nodiscard]] generator : public std::ranges::view_interface<generator<Ref, Val, Alloc>> {
    using value = std::conditional_t<std::is_void_v<Val>, std::remove_cvref_t<Ref>, Val>;
    using reference = std::conditional_t<std::is_void_v<Val>, Ref&&, Ref>;

public:
    using yielded = std::conditional_t<std::is_reference_v<reference>, reference, const reference&>;

private:
    using promise_base = detail::generator_promise<yielded>;

public:
    class iterator {
    public:
        using value_type = value;
        using difference_type = std::ptrdiff_t;

        iterator(iterator&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
        iterator& operator=(iterator&& other) noexcept {
            frame_ = std::exchange(other.frame_, nullptr);
            return *this;
        }

        reference operator*() const noexcept(std::is_nothrow_copy_constructible_v<reference>) {
            return static_cast<reference>(frame_.promise().value());
        }
        iterator& operator++() {
            frame_.promise().advance();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept {
            return i.frame_.done();
        }

    private:
        friend generator;
        explicit iterator(std::coroutine_handle<promise_base> frame) noexcept : frame_(frame) {}
        std::coroutine_handle<promise_base> frame_;
    };

    generator() noexcept = default;
    generator(typename promise_base::made m) noexcept : frame_(m.frame) {}  // by the compiler
    generator(generator&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    generator& operator=(generator&& other) noexcept {
        generator(std::move(other)).swap(*this);
        return *this;
    }
    // Destroys the frame, and the frames that are nested in it.
    ~generator() {
        if (frame_) frame_.destroy();
    }
    void swap(generator& other) noexcept { std::swap(frame_, other.frame_); }

    // Whether this object has a coroutine: false by default, and after a move.
    explicit operator bool() const noexcept { return frame_ != nullptr; }

    // Runs the body to its first element.
    iterator begin(std::source_location caller = std::source_location::current()) {
        if (!frame_) fail("begin of an empty generator", {}, caller);
        if (frame_.promise().is_begun()) fail("second begin of a generator", {}, caller);
        frame_.promise().begin();
        return iterator(frame_);
    }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

private:
    template <class>
    friend class detail::generator_promise;  // nests it

    promise_base& promise() const noexcept { return frame_.promise(); }
    promise_base& promise_to_nest() const {
        if (frame_.promise().is_begun())
            fail("elements_of a generator that has begun", {}, unknown_caller);
        return frame_.promise();
    }

    std::coroutine_handle<promise_base> frame_;
};

}  // namespace weft

template <class Ref, class Val, class Alloc, class... Args>
struct std::coroutine_traits<weft::generator<Ref, Val, Alloc>, Args...> {
    using promise_type = weft::detail::promise_for<
        weft::detail::generator_promise<typename weft::generator<Ref, Val, Alloc>::yielded>, Alloc,
        Args...>;
};
