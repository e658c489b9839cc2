// shared_future<T>: a future whose outcome several owners may use, on any threads.
//
// Design: the outcome moves into a block of its own, together with a queue of all waiters, which
// are notified in the order in which they came. Copies are handles of the same block. The value is
// given by const reference, and lives as long as a handle, or a function that is called with the
// value. The exception is thrown to each waiter.
//
// Limits: a stop of a future that was made by then() stops that future alone. request_stop() of a
// shared_future asks the future that it was made of.
//
//   weft::shared_future<config> c = load().share();
//   auto port = c.then([](const config& x) { return x.port; });
//   const config& x = c.get();                    // or co_await c
//
// Model: test/model/future_core_test.cpp
#pragma once

#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/detail/lifetime.hpp"
#include "weft/base/detail/min_max.hpp"
#include "weft/future/future.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {
namespace detail {

// The listeners of a shared outcome: waiters, and continuations.
struct shared_part {
    struct all : listener {
        shared_part* owner = nullptr;
    } listen;
    wait_queue queue;  // its lock guards the fields below
    forward_queue<runnable> following;
    bool done = false;

    explicit shared_part(future_core& c) noexcept;
    shared_part(const shared_part&) = delete;
    shared_part& operator=(const shared_part&) = delete;

    // False: the outcome exists already.
    [[nodiscard]] bool enlist(wait_node& n) noexcept;
    void follow(follow_part& p) noexcept;
    void notify_all() noexcept;

    template <class T>
    static constexpr std::size_t offset = aligned(
        detail::max_of(outcome_end<T>, sizeof(future_core) + sizeof(follow_part)), alignof(void*));
    template <class T>
    static shared_part& of(future_core& c) noexcept {
        return in_room<shared_part>(c, offset<T>);
    }
};

template <class T>
struct shared_block {
    static constexpr std::size_t offset = shared_part::offset<T>;
    static constexpr std::size_t bytes = offset + sizeof(shared_part);
    static constexpr std::size_t alignment = block_alignment<T>(alignof(shared_part));

    // Takes the reference to `from`.
    static future_core* make(future_core& from) {
        void* const memory = block_cache::acquire(bytes, alignment);
        auto* const c = ::new (memory) future_core(*from.home, nullptr, dispose, 2);
        ::new (static_cast<void*>(reinterpret_cast<std::byte*>(c) + offset)) shared_part(*c);
        static_cast<void>(c->begin());
        if (adopt<T>(*c, &from)) c->finish();
        return c;
    }

private:
    static void dispose(frame* f) noexcept {
        future_core& c = future_core::of(f);
        // Relaxed: ordered by the last release().
        if (c.references.load(std::memory_order_relaxed) != 0) return drop_forwarding(c);
        detail::destroy_at(&shared_part::of<T>(c));
        destroy_outcome<T>(c);
        release_block(c, bytes, alignment);
    }
};

template <class T>
using shared_reference = std::add_lvalue_reference_t<std::add_const_t<T>>;

// Waits for a shared outcome, and returns a reference to it.
class [[nodiscard]] shared_wait_operation {
public:
    static constexpr bool reports_stop = false;

    shared_wait_operation(future_core& c, shared_part& p, time_limit limit) noexcept
        : core_(&c), part_(&p), limit_(limit) {}
    shared_wait_operation(shared_wait_operation&& other) noexcept  // before it is awaited
        : shared_wait_operation(*other.core_, *other.part_, other.limit_) {}

    bool ready() const noexcept { return core_->word.is_done(); }
    bool start(waiter& w) noexcept;
    time_point deadline() const noexcept { return deadline_of(limit_); }
    bool take(const waiter* w, wait_status how) const {
        if (how == wait_status::stopped) throw_stopped(w->reason());
        return how == wait_status::woken;
    }

protected:
    future_core* core_;

private:
    shared_part* part_;
    time_limit limit_;
    wait_node node_;
};

template <class T>
class [[nodiscard]] shared_get_operation : public shared_wait_operation {
public:
    using shared_wait_operation::shared_wait_operation;
    shared_reference<T> take(const waiter* w, wait_status how) {
        shared_wait_operation::take(w, how);
        if (!core_->has_value()) core_->throw_failure();
        if constexpr (!std::is_void_v<T>) return seen<T>(value_of<T>(*core_));
    }
};

// The Source of a shared future's continuations: the function is called with a const T&.
template <class T>
struct shared_source {
    static constexpr manner waiting = manner::shares;
    static void follow(follow_part& p) noexcept { shared_part::of<T>(*p.up).follow(p); }
    static void pass_failure(future_core& from, future_core& to) noexcept {
        to.copy_failure_of(from);
    }
    class argument {
    public:
        explicit argument(future_core& up) noexcept : up_(up) {}
        argument(const argument&) = delete;
        argument& operator=(const argument&) = delete;
        ~argument() { release(&up_); }
        template <class Body>
        bool call(Body& body, future_core& c) const {
            if constexpr (std::is_void_v<T>) {
                return body(c, value_of<void>(up_));
            } else {
                stored_t<shared_reference<T>> at = &seen<T>(value_of<T>(up_));
                return body(c, at);
            }
        }

    private:
        future_core& up_;
    };
};

}  // namespace detail

template <class T = void>
class [[nodiscard]] shared_future {
    using core = detail::future_core;
    using reference = detail::shared_reference<T>;

public:
    using value_type = T;

    shared_future() noexcept = default;  // empty
    explicit shared_future(future<T>&& f) {
        if (!f.valid()) return;
        core_ = detail::shared_block<T>::make(detail::core_of_future::core(f));  // throws bad_alloc
        static_cast<void>(detail::core_of_future::take(f));
    }
    shared_future(const shared_future& other) noexcept : core_(other.core_) {
        if (core_ != nullptr) core_->keep();
    }
    shared_future(shared_future&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    shared_future& operator=(shared_future other) noexcept {
        std::swap(core_, other.core_);
        return *this;
    }
    // Releases its share of the outcome. Nothing is stopped.
    ~shared_future() { detail::release(core_); }

    bool valid() const noexcept { return core_ != nullptr; }
    bool is_ready() const noexcept { return core_ != nullptr && core_->word.is_done(); }
    bool has_value() const noexcept { return is_ready() && core_->has_value(); }
    executor& home(std::source_location caller = std::source_location::current()) const {
        return *checked(caller).home;
    }

    // As future::get(), but the shared_future keeps the outcome.
    reference get(std::source_location caller = std::source_location::current()) const {
        return await(async_get(caller), caller);
    }
    void wait(std::source_location caller = std::source_location::current()) const {
        static_cast<void>(await(async_wait({}, caller), caller));
    }
    template <class Clock, class Duration>
    bool wait_until(std::chrono::time_point<Clock, Duration> t,
                    std::source_location caller = std::source_location::current()) const {
        return await(async_wait(t, caller), caller);
    }
    template <class Rep, class Period>
    bool wait_for(std::chrono::duration<Rep, Period> d,
                  std::source_location caller = std::source_location::current()) const {
        return await(async_wait(d, caller), caller);
    }
    detail::shared_get_operation<T> async_get(
        std::source_location caller = std::source_location::current()) const {
        core& c = checked(caller);
        return detail::shared_get_operation<T>(c, detail::shared_part::of<T>(c), {});
    }
    detail::shared_wait_operation async_wait(
        time_limit limit = {},
        std::source_location caller = std::source_location::current()) const {
        core& c = checked(caller);
        return detail::shared_wait_operation(c, detail::shared_part::of<T>(c), limit);
    }
    auto operator co_await() const { return detail::operation_holder(async_get(unknown_caller)); }

    // The future of f's result; f is called with a const T&.
    template <class F>
    auto then(F&& f, std::source_location caller = std::source_location::current()) const {
        return then_by<detail::fiber_way>(std::forward<F>(f), caller);
    }
    template <class F>
    auto then(plain_t, F&& f, std::source_location caller = std::source_location::current()) const {
        return then_by<detail::plain_way>(std::forward<F>(f), caller);
    }

    // Asks the future that *this was made of to stop. False: that future has an outcome, or was
    // asked before.
    bool request_stop(stop_reason reason = stop_reason::user) const noexcept {
        return core_ != nullptr && detail::request_stop(*core_, reason);
    }

private:
    core& checked(std::source_location caller) const {
        if (core_ == nullptr) [[unlikely]]
            fail("use of a shared_future that is empty", {}, caller);
        return *core_;
    }
    template <class Way, class F>
    auto then_by(F&& f, std::source_location caller) const {
        core& c = checked(caller);
        using body = detail::then_body<reference, std::decay_t<F>>;
        c.keep();
        core* const next = detail::continuation<detail::shared_source<T>, body, Way>::make(
            *c.home, c, body{std::forward<F>(f)});
        return future<typename body::result>(next);
    }

    core* core_ = nullptr;
};

template <class T>
shared_future<T> future<T>::share() {
    return shared_future<T>(std::move(*this));
}

}  // namespace weft
