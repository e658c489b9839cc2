// generator_promise: the part of a generator that is stored in the coroutine frame. See
// generator.hpp.
//
// Design: the outermost generator of a nest, the root, points at the innermost, the leaf. The
// consumer of the root resumes the leaf directly, at any depth. A generator that begins or ends an
// inner generator changes the leaf and returns to the consumer, which loops. Neither depth nor the
// number of empty inner generators takes stack, in any build.
//
//   consumer ++ --resumes--> leaf                     root    middle    leaf
//                             | value                  ^ parent | ^ parent |
//                             v                        +--------+ +--------+
//                            root                     leaf -------------->
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <ranges>
#include <type_traits>
#include <utility>

#include "weft/base/detail/caught_exception.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/base/platform.hpp"
#include "weft/task/detail/frame_memory.hpp"
#include "weft/task/elements_of.hpp"

namespace weft {

template <class Ref, class Val = void, class Alloc = void>
class generator;

namespace detail {

// Yielded: the reference type through which elements pass.
//
// Invariants, once the generator has begun:
// I1  root_ is the outermost promise; leaf_, in the root, is the promise that is suspended at a
//     yield or is to be resumed next
// I2  value_, in the root, points at the element that the leaf has yielded, until the leaf resumes
template <class Yielded>
class generator_promise : public frame_memory {
    using handle = std::coroutine_handle<generator_promise>;
    using object = std::remove_reference_t<Yielded>;

    // Whether an Element can be yielded, as it is or as a copy.
    template <class Element>
    static constexpr bool yieldable =
        std::convertible_to<Element, Yielded> ||
        (std::is_rvalue_reference_v<Yielded> && std::convertible_to<Element, const object&>);

public:
    generator_promise() noexcept = default;
    generator_promise(const generator_promise&) = delete;
    generator_promise& operator=(const generator_promise&) = delete;

    // A generator is made from this; the promise does not know the type of the generator.
    struct made {
        handle frame;
    };
    made get_return_object() noexcept { return {handle::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() noexcept { return ending{}; }
    void return_void() const noexcept {}
    WEFT_COLD void unhandled_exception() {
        leave_nest();  // also if a kill of the consuming fiber continues from here
        error_ = caught_exception();
    }
    void await_transform() = delete;  // a generator awaits nothing

    std::suspend_always yield_value(Yielded element) noexcept {
        root_->value_ = detail::address_of(element);  // I2
        return {};
    }
    // Yields a copy of an element that must not be moved from.
    auto yield_value(const object& element)
        requires std::is_rvalue_reference_v<Yielded> &&
                 std::constructible_from<std::remove_cvref_t<Yielded>, const object&>
    {
        return yielding_copy(element);
    }
    template <class R, class V, class A>
        requires std::same_as<typename generator<R, V, A>::yielded, Yielded>
    auto yield_value(elements_of<generator<R, V, A>&&> inner) noexcept {
        return nesting<generator<R, V, A>>(std::move(inner.range));
    }
    template <std::ranges::input_range Range>
        requires yieldable<std::ranges::range_reference_t<Range>>
    auto yield_value(elements_of<Range> inner) {
        return yield_value(
            elements_of(each(std::ranges::begin(inner.range), std::ranges::end(inner.range))));
    }

    bool is_begun() const noexcept { return root_ != nullptr; }

    // Called by the consumer on the root: go to the first element, to the next, or to the end.
    void begin() {
        root_ = leaf_ = this;
        advance();
    }
    void advance() {
        generator_promise* resumed;
        do {
            resumed = leaf_;
            handle::from_promise(*resumed).resume();
        } while (resumed != leaf_);
        rethrow();
    }
    object& value() const noexcept { return *value_; }

private:
    void leave_nest() noexcept {
        if (root_ != this) root_->leaf_ = parent_;  // I1
    }
    void rethrow() {
        if (__builtin_expect(error_ != nullptr, 0))
            std::rethrow_exception(std::exchange(error_, nullptr));
    }

    struct ending {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> h) const noexcept {
            h.promise().leave_nest();
        }
        void await_resume() const noexcept {}
    };

    class yielding_copy {
    public:
        explicit yielding_copy(const object& element) : copy_(element) {}
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> h) noexcept {
            generator_promise& p = h.promise();
            p.root_->value_ = detail::address_of(copy_);  // I2
        }
        void await_resume() const noexcept {}

    private:
        std::remove_cvref_t<Yielded> copy_;
    };

    // Owns the inner generator during the co_yield.
    template <class Generator>
    class nesting {
    public:
        explicit nesting(Generator&& inner) noexcept : inner_(std::move(inner)) {}
        bool await_ready() const noexcept { return !inner_; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> h) {
            generator_promise& outer = h.promise();
            generator_promise& p = inner_.promise_to_nest();
            p.root_ = outer.root_;
            p.parent_ = &outer;
            p.root_->leaf_ = &p;  // I1
        }
        void await_resume() {
            if (inner_) inner_.promise().rethrow();
        }

    private:
        Generator inner_;
    };

    template <class I, class S>
    static generator<Yielded> each(I at, S end) {
        for (; at != end; ++at) {
            if constexpr (std::convertible_to<decltype(*at), Yielded>)
                co_yield static_cast<Yielded>(*at);
            else
                co_yield static_cast<const object&>(*at);
        }
    }

    object* value_ = nullptr;
    generator_promise* root_ = nullptr;
    generator_promise* leaf_ = nullptr;
    generator_promise* parent_ = nullptr;  // not in the root
    std::exception_ptr error_;
};

}  // namespace detail
}  // namespace weft
