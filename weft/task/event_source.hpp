// event_source<T>: an external event, and all its waiters.
//
// Design: the source does not remember past events. next() waits for the first set() after it; each
// set() gives its value to all waiters that are queued then, in FIFO order. Any number of agents
// may wait, any number of times. T is void if an event carries no value.
//
// latest() also takes a value that was set while no waiter was queued, if latest() has not taken it
// yet: of several, the last. A consumer that must not miss a value needs a channel.
//
// The operation of next() may be a temporary in the co_await or have a name; it sees the events
// from its await on.
//
// Limits: a source outlives its waiters. T is copied for each waiter but the last, which gets the
// value itself.
//
//   weft::event_source<reading> sensor;
//   on_interrupt([&] { sensor.set(read()); });          // any thread
//   reading r = co_await sensor.next();                 // in a coroutine
//   reading s = weft::await(sensor.next());             // in a fiber, on a thread
#pragma once

#include <concepts>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/caught_exception.hpp"
#include "weft/wait/operation.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

template <class T = void>
class event_source {
    using stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
    static_assert(std::is_copy_constructible_v<stored>, "each waiter gets a copy");
    struct node : wait_node {
        std::optional<stored> value;
        std::exception_ptr error;  // thrown by the copy into value
    };
    // A value is made, moved and destroyed without the lock; under the lock only a pointer moves.
    struct event_value {
        stored value;

        template <class... V>
        explicit event_value(V&&... v) : value(std::forward<V>(v)...) {}
        static void* operator new(std::size_t bytes) {
            return detail::block_cache::acquire(bytes, alignof(event_value));
        }
        static void operator delete(void* p, std::size_t bytes) noexcept {
            detail::block_cache::release(p, bytes, alignof(event_value));
        }
    };

public:
    event_source() noexcept = default;
    event_source(const event_source&) = delete;
    event_source& operator=(const event_source&) = delete;

    class [[nodiscard]] operation {
    public:
        static constexpr bool reports_stop = false;

        // Only before the await.
        operation(operation&& other) noexcept : operation(*other.source_, other.latest_) {}

        bool ready() const noexcept { return false; }
        bool start(waiter& w);
        T take(const waiter* w, wait_status how);

    private:
        friend event_source;
        operation(event_source& s, bool latest) noexcept : source_(&s), latest_(latest) {}

        event_source* source_;
        bool latest_;
        node node_;
    };

    operation next() noexcept { return operation(*this, false); }
    operation latest() noexcept { return operation(*this, true); }

    // Returns the number of waiters that get the value. Any thread. If making the value throws,
    // the exception leaves set(), and nothing else has happened. If a copy throws, the exception
    // is thrown to the waiter for which the copy was made.
    template <class... V>
        requires std::constructible_from<stored, V...>
    std::size_t set(V&&... value);

private:
    template <class V>
    static void give_or_tell(node& to, V&& value) noexcept;

    wait_queue queue_;                   // its lock guards kept_ too
    std::unique_ptr<event_value> kept_;  // the last value set while no waiter was queued
};

// ---------------------------------------------------------------------------------------------

template <class T>
bool event_source<T>::operation::start(waiter& w) {
    node_.owner = &w;
    w.enlist("an event", source_, this, [](waiter& gone) noexcept {
        auto& self = gone.template operation<operation>();
        self.source_->queue_.cancel(self.node_);
    });
    std::unique_ptr<event_value> taken;
    {
        const std::lock_guard held(source_->queue_);
        if (!latest_ || !source_->kept_) {
            source_->queue_.push_back(node_);
            return true;
        }
        taken = std::move(source_->kept_);
    }
    node_.value.emplace(std::move(taken->value));
    return false;
}

template <class T>
T event_source<T>::operation::take(const waiter* w, wait_status how) {
    if (how == wait_status::stopped) detail::throw_stopped(w->reason());
    if (node_.error) std::rethrow_exception(node_.error);
    if constexpr (!std::is_void_v<T>) return *std::move(node_.value);
}

template <class T>
template <class V>
void event_source<T>::give_or_tell(node& to, V&& value) noexcept {
    if constexpr (std::is_nothrow_constructible_v<stored, V>)
        to.value.emplace(std::forward<V>(value));
    else
        detail::keep_thrown(to.error, [&] { to.value.emplace(std::forward<V>(value)); });
}

template <class T>
template <class... V>
    requires std::constructible_from<typename event_source<T>::stored, V...>
std::size_t event_source<T>::set(V&&... value) {
    auto news = std::make_unique<event_value>(std::forward<V>(value)...);
    wait_list woken;
    {
        const std::lock_guard held(queue_);
        queue_.claim_all(woken);
        if (woken.empty()) kept_.swap(news);  // the old value is destroyed after the lock
    }
    // The claimed nodes belong to this call, and exist until their waiters are woken.
    std::size_t count = 0;
    while (wait_node* n = woken.pop_front()) {
        auto& to = static_cast<node&>(*n);
        if (woken.empty())
            give_or_tell(to, std::move(news->value));
        else
            give_or_tell(to, std::as_const(news->value));
        to.owner->wake();
        ++count;
    }
    return count;
}

}  // namespace weft
