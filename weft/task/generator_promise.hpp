// generator_promise: the part of a generator that lies in its coroutine frame; elements_of, by
// which a generator yields what another one, or any range, yields. See generator.hpp.
//
// The one idea: the outermost generator of a nest, the root, knows the innermost, the leaf, and who
// consumes the root resumes the leaf at once, however deep it lies. A generator that begins or ends
// an inner one changes the leaf and returns to the consumer, who goes round again: so no depth
// and no number of empty inner generators takes stack, in any build.
//
//   consumer ++ --resumes--> leaf                     root    middle    leaf
//                             | value                  ^ parent | ^ parent |
//                             v                        +--------+ +--------+
//                            root                     leaf -------------->
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

#include "weft/base/platform.hpp"
#include "weft/task/frame_memory.hpp"

namespace weft {

template <class Ref, class Val = void, class Alloc = void>
class generator;

// co_yield elements_of(g): yields each element of the generator or range g. A range is kept by
// reference; it lives to the end of the co_yield in any case.
template <class Range>
class elements_of {
public:
    explicit constexpr elements_of(Range&& r) noexcept : range(static_cast<Range&&>(r)) {}
    Range&& range;
};
template <class Range>
elements_of(Range&&) -> elements_of<Range&&>;

namespace detail {

// Yielded: the reference type through which elements pass.
//
// Invariants, once it has begun:
// I1  root_ is the outermost; in the root, leaf_ is the one that is suspended at a yield or is to
//     be resumed next
// I2  value_, in the root, points at what the leaf has yielded, until it is resumed
template <class Yielded>
class generator_promise : public frame_memory {
    using handle = std::coroutine_handle<generator_promise>;
    using object = std::remove_reference_t<Yielded>;

    // Passes as it is, or as a copy.
    template <class Element>
    static constexpr bool yieldable =
        std::convertible_to<Element, Yielded> ||
        (std::is_rvalue_reference_v<Yielded> && std::convertible_to<Element, const object&>);

public:
    generator_promise() noexcept = default;
    generator_promise(const generator_promise&) = delete;
    generator_promise& operator=(const generator_promise&) = delete;

    // What a generator is made from; the promise does not know which of those that it serves.
    struct made {
        handle frame;
    };
    made get_return_object() noexcept { return {handle::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() noexcept { return ending{}; }
    void return_void() const noexcept {}
    WEFT_COLD void unhandled_exception() noexcept { error_ = std::current_exception(); }
    void await_transform() = delete;  // a generator awaits nothing

    std::suspend_always yield_value(Yielded element) noexcept {
        root_->value_ = std::addressof(element);  // I2
        return {};
    }
    // Of an element that is not to be moved from, a copy is yielded.
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

    bool begun() const noexcept { return root_ != nullptr; }

    // For the consumer of the root: to the first element, or to the next one, or to the end.
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
    void rethrow() {
        if (__builtin_expect(error_ != nullptr, 0))
            std::rethrow_exception(std::exchange(error_, nullptr));
    }

    struct ending {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> h) const noexcept {
            generator_promise& p = h.promise();
            if (p.root_ != &p) p.root_->leaf_ = p.parent_;  // I1
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
            p.root_->value_ = std::addressof(copy_);  // I2
        }
        void await_resume() const noexcept {}

    private:
        std::remove_cvref_t<Yielded> copy_;
    };

    // Holds the inner generator while it runs.
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
