// event_source<T>: something that happens outside, and everybody who waits for it.
//
//   weft::event_source<reading> sensor;
//   on_interrupt([&] { sensor.set(read()); });          // any thread
//   reading r = co_await sensor.next();                 // in a coroutine
//   reading s = weft::await(sensor.next());             // in a fiber, on a thread
//
// Its one idea: it has no memory of what has happened: next() waits for the next set() after it,
// and each set() gives its value to all who wait at that moment, in the order in which they came.
// So it can be awaited any number of times, and by any number. T is copied for each of them, and
// what is copied last lies in the source until then; void where nothing is to be told.
//
// latest() also takes what was set before, if that was not taken yet by anybody: of several, the
// last. For who must not miss one, take a channel.
//
// next() may stand in the co_await or have a name; it is counted from its await on. A source
// outlives who waits for it.
#pragma once

#include <concepts>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/block_cache.hpp"
#include "weft/wait/operation.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

template <class T = void>
class event_source {
    using stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
    static_assert(std::is_copy_constructible_v<stored>, "each who waits gets a copy");
    struct node : wait_node {
        std::optional<stored> value;
        std::exception_ptr error;  // of who copied it
    };
    // A value is made, moved and destroyed without the lock; under it a pointer changes hands.
    struct told {
        stored value;

        template <class... V>
        explicit told(V&&... v) : value(std::forward<V>(v)...) {}
        static void* operator new(std::size_t bytes) {
            return block_cache::acquire(bytes, alignof(told));
        }
        static void operator delete(void* p, std::size_t bytes) noexcept {
            block_cache::release(p, bytes, alignof(told));
        }
    };

public:
    event_source() noexcept = default;
    event_source(const event_source&) = delete;
    event_source& operator=(const event_source&) = delete;

    class [[nodiscard]] operation {
    public:
        static constexpr bool reports_stop = false;

        // Before it is awaited.
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

    // Any thread. How many it was given to. Throws what making the value throws, and then nothing
    // has happened; what making a copy throws, the one who was to get it is told.
    template <class... V>
        requires std::constructible_from<stored, V...>
    std::size_t set(V&&... value);

private:
    template <class V>
    static void give_or_tell(node& to, V&& value) noexcept;

    wait_queue queue_;            // the lock of what follows
    std::unique_ptr<told> kept_;  // set when nobody waited
};

// ---------------------------------------------------------------------------------------------

template <class T>
bool event_source<T>::operation::start(waiter& w) {
    node_.owner = &w;
    w.enlist("an event", source_, this, [](waiter& gone) noexcept {
        auto& self = gone.template operation<operation>();
        self.source_->queue_.withdraw(self.node_);
    });
    std::unique_ptr<told> taken;
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
#if WEFT_EXCEPTIONS
    try {
        to.value.emplace(std::forward<V>(value));
    } catch (...) {
        to.error = std::current_exception();
    }
#else
    to.value.emplace(std::forward<V>(value));
#endif
}

template <class T>
template <class... V>
    requires std::constructible_from<typename event_source<T>::stored, V...>
std::size_t event_source<T>::set(V&&... value) {
    auto news = std::make_unique<told>(std::forward<V>(value)...);
    wait_list woken;
    {
        const std::lock_guard held(queue_);
        queue_.claim_all(woken);
        if (woken.empty()) kept_.swap(news);  // what it was before goes after the lock
    }
    // They are ours, and stay until they are woken.
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
