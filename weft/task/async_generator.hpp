// async_generator<T>: a coroutine that yields one T after the other and may await in between.
//
// Design: the body runs in the flow of the awaiter of the next element: in the awaiter's turn, on
// the awaiter's executor. When the body yields, the awaiter resumes, without a queue in between and
// without the stack growing. A stop or a deadline of the awaiter therefore ends a wait of the body.
// An exception of the body, and weft::stopped, come out of begin(), ++ or next(); the range is then
// at its end.
//
// Destroying the generator destroys the frame, whatever the body waits for. T may be a reference,
// move-only, or without a default constructor.
//
// Limits: at most one awaiter at a time waits for the next element. A yielded element is a
// reference into the frame, valid until the next ++. An empty generator (default-constructed, or
// moved from) has no elements: a request for one aborts, as for generator.
//
//   weft::async_generator<line> lines(stream& s) {
//       while (auto l = co_await s.async_read_line()) co_yield *l;
//   }
//   auto g = lines(s);
//   for (auto it = co_await g.begin(); it != g.end(); co_await ++it) use(*it);
//   while (line* l = co_await g.next()) use(*l);            // the same, shorter
#pragma once

#include <coroutine>
#include <exception>
#include <iterator>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/detail/caught_exception.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/task/detail/frame_memory.hpp"
#include "weft/task/detail/transfer.hpp"

namespace weft {

template <class T>
class async_generator;

namespace detail {

// Out of line, so that a body that never calls these functions needs no stack for their arguments.
[[noreturn]] WEFT_COLD inline void fail_second_next(std::source_location caller) {
    fail("second await of an async_generator's next element", {}, caller);
}
[[noreturn]] WEFT_COLD inline void fail_empty_next(std::source_location caller) {
    fail("an element of an empty async_generator", {}, caller);
}

template <class T>
class async_generator_promise : public transfer_base, public frame_memory {
public:
    using value = std::remove_reference_t<T>;

    async_generator<T> get_return_object() noexcept;
    WEFT_ALWAYS_INLINE std::suspend_always initial_suspend() noexcept {
        word = tail_call_bits;
        return {};
    }

    // Transfers to the awaiter of the element.
    struct handing_back {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        WEFT_ALWAYS_INLINE std::coroutine_handle<> await_suspend(
            std::coroutine_handle<Promise> h) const noexcept {
            return resume_awaiter(h.promise());
        }
        void await_resume() const noexcept {}
    };
    handing_back final_suspend() noexcept {
        yielded = nullptr;
        return {};
    }

    handing_back yield_value(value& v) noexcept {
        yielded = detail::address_of(v);
        return {};
    }
    handing_back yield_value(value&& v) noexcept
        requires(!std::is_lvalue_reference_v<T>)
    {
        yielded = detail::address_of(v);
        return {};
    }

    void return_void() noexcept {}
    WEFT_COLD void unhandled_exception() {
        yielded = nullptr;  // also if a kill of the awaiting fiber continues from here
        failure = caught_exception();
    }

    value* yielded = nullptr;  // null at the end
    std::exception_ptr failure;
};

}  // namespace detail

template <class T>
class [[nodiscard]] async_generator {
    using promise = detail::async_generator_promise<T>;
    using value = typename promise::value;

public:
    class iterator;

    // Awaited once: advances to the next element.
    class [[nodiscard]] advance {
    public:
        explicit advance(std::coroutine_handle<promise> g) noexcept : frame_(g) {}
        bool await_ready() const noexcept { return frame_.done(); }
        template <class Awaiting>
        WEFT_ALWAYS_INLINE std::coroutine_handle<> await_suspend(
            std::coroutine_handle<Awaiting> h,
            std::source_location caller = std::source_location::current()) noexcept {
            promise& p = frame_.promise();
            if (__builtin_expect(p.awaiter != nullptr, 0)) detail::fail_second_next(caller);
            p.awaiter = h;
            if constexpr (std::is_base_of_v<detail::transfer_base, Awaiting>) {
                p.word &= ~detail::transfer_base::foreign;
                return detail::transfer_to(h.promise(), frame_, false);
            } else {
                p.word |= detail::transfer_base::foreign;
                return detail::tail_call_bits == 0
                           ? std::coroutine_handle<>(frame_)
                           : detail::transfer_slowly(nullptr, frame_, false);
            }
        }
        value* await_resume() const {
            promise& p = frame_.promise();
            p.awaiter = nullptr;
            if (p.failure) std::rethrow_exception(std::exchange(p.failure, nullptr));
            return p.yielded;
        }

    private:
        std::coroutine_handle<promise> frame_;
    };

    // As advance, but updates the iterator, if any, and returns one.
    class [[nodiscard]] step : public advance {
    public:
        step(std::coroutine_handle<promise> g, iterator* it) noexcept
            : advance(g), frame_(g), it_(it) {}
        iterator await_resume() const {
            if (it_ != nullptr) it_->at_ = nullptr;  // remains null if the next line throws
            value* v = advance::await_resume();
            if (it_ != nullptr) it_->at_ = v;
            return iterator(frame_, v);
        }

    private:
        std::coroutine_handle<promise> frame_;
        iterator* it_;
    };

    class iterator {
    public:
        T& operator*() const noexcept { return *at_; }
        value* operator->() const noexcept { return at_; }
        step operator++() noexcept { return step(frame_, this); }
        friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept {
            return i.at_ == nullptr;
        }

    private:
        friend class step;
        iterator(std::coroutine_handle<promise> g, value* v) noexcept : frame_(g), at_(v) {}
        std::coroutine_handle<promise> frame_;
        value* at_;
    };

    async_generator() noexcept = default;
    async_generator(async_generator&& other) noexcept
        : frame_(std::exchange(other.frame_, nullptr)) {}
    async_generator& operator=(async_generator&& other) noexcept {
        async_generator(std::move(other)).swap(*this);
        return *this;
    }
    // Destroys the frame, whatever the body waits for.
    ~async_generator() {
        if (frame_) frame_.destroy();
    }
    void swap(async_generator& other) noexcept { std::swap(frame_, other.frame_); }

    // co_await gives a pointer to the next element, null at the end.
    advance next(std::source_location caller = std::source_location::current()) noexcept {
        return advance(checked(caller));
    }

    step begin(std::source_location caller = std::source_location::current()) noexcept {
        return step(checked(caller), nullptr);
    }
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    friend promise;
    explicit async_generator(std::coroutine_handle<promise> g) noexcept : frame_(g) {}

    std::coroutine_handle<promise> checked(std::source_location caller) const noexcept {
        if (__builtin_expect(!frame_, 0)) detail::fail_empty_next(caller);
        return frame_;
    }

    std::coroutine_handle<promise> frame_;
};

namespace detail {

template <class T>
async_generator<T> async_generator_promise<T>::get_return_object() noexcept {
    return async_generator<T>(std::coroutine_handle<async_generator_promise>::from_promise(*this));
}

}  // namespace detail
}  // namespace weft

template <class T, class... Args>
struct std::coroutine_traits<weft::async_generator<T>, Args...> {
    using promise_type =
        weft::detail::promise_for<weft::detail::async_generator_promise<T>, void, Args...>;
};
