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

#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/wait/operation.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

template <class T = void>
class event_source {
    using stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
    static_assert(std::is_copy_constructible_v<stored>, "each who waits gets a copy");
    struct node : wait_node {
        std::optional<stored> value;
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

    // Any thread. How many it was given to.
    template <class... V>
        requires std::constructible_from<stored, V...>
    std::size_t set(V&&... value);

private:
    wait_queue queue_;            // the lock of what follows
    std::optional<stored> kept_;  // set when nobody waited
};

// ---------------------------------------------------------------------------------------------

template <class T>
bool event_source<T>::operation::start(waiter& w) {
    node_.owner = &w;
    w.enlist("an event", source_, this, [](waiter& gone) noexcept {
        auto& self = gone.template operation<operation>();
        self.source_->queue_.withdraw(self.node_);
    });
    const std::lock_guard held(source_->queue_);
    if (latest_ && source_->kept_) {
        node_.value = std::exchange(source_->kept_, std::nullopt);
        return false;
    }
    source_->queue_.push_back(node_);
    return true;
}

template <class T>
T event_source<T>::operation::take(const waiter* w, wait_status how) {
    if (how == wait_status::stopped) detail::throw_stopped(w->reason());
    if constexpr (!std::is_void_v<T>) return *std::move(node_.value);
}

template <class T>
template <class... V>
    requires std::constructible_from<typename event_source<T>::stored, V...>
std::size_t event_source<T>::set(V&&... value) {
    stored told(std::forward<V>(value)...);
    wait_list woken;
    {
        const std::lock_guard held(queue_);
        queue_.claim_all(woken);
        if (woken.empty()) {
            kept_.emplace(std::move(told));
            return 0;
        }
    }
    // They are ours, and stay until they are woken.
    std::size_t count = 0;
    while (wait_node* n = woken.pop_front()) {
        auto& to = static_cast<node&>(*n);
        if (woken.empty())
            to.value.emplace(std::move(told));
        else
            to.value.emplace(static_cast<const stored&>(told));
        to.owner->wake();
        ++count;
    }
    return count;
}

}  // namespace weft
