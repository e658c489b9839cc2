// once_flag, call_once: a function that is called by the first who comes; the others wait until it
// has returned. std's, for fibers, coroutines and threads.
//
// If it throws, the exception goes to who called it, and the first in line calls it again.
//
//   weft::once_flag loaded;
//   weft::call_once(loaded, [&] { table = load(); });
//
//   if (co_await loaded.async_enter()) {           // in a coroutine: true for one
//       weft::once_turn mine(loaded);              // left early, it lets the next one try
//       table = co_await async_load();
//       mine.succeeded();
//   }
//
// Model: none, what changes, changes under the lock of its word_queue, which has one.
#pragma once

#include <functional>
#include <source_location>
#include <utility>

#include "weft/sync/timed.hpp"
#include "weft/sync/word_queue.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class once_flag;

namespace detail {

class [[nodiscard]] once_operation {
public:
    static constexpr bool reports_stop = false;

    explicit once_operation(once_flag& f) noexcept : flag_(&f) {}
    // Before it is awaited.
    once_operation(once_operation&& other) noexcept : flag_(other.flag_) {}
    once_operation& operator=(const once_operation&) = delete;
    ~once_operation();

    bool ready() const noexcept;
    bool start(waiter& w) noexcept;
    // Whether the caller is the one.
    [[nodiscard]] bool take(const waiter* w, wait_status how) {
        const bool chosen = std::exchange(node_.given, false);
        if (how == wait_status::stopped) throw_stopped(w->reason());
        return chosen;
    }

private:
    once_flag* flag_;
    queue_node node_;
};

}  // namespace detail

class once_flag {
public:
    constexpr once_flag() noexcept : queue_(fresh) {}
    once_flag(const once_flag&) = delete;
    once_flag& operator=(const once_flag&) = delete;

    bool is_done() const noexcept { return queue_.value() == done; }

    // Waits until it is done, or the caller's turn: then true, and the caller owes a leave(), which
    // a once_turn makes for him: true if it is done, false if the next one is to try.
    detail::once_operation async_enter() noexcept { return detail::once_operation(*this); }
    void leave(bool succeeded,
               std::source_location place = std::source_location::current()) noexcept;

private:
    friend class detail::once_operation;
    static constexpr detail::word_queue::word fresh = 0;
    static constexpr detail::word_queue::word running = detail::word_queue::unit;
    static constexpr detail::word_queue::word done = 2 * detail::word_queue::unit;

    detail::word_queue queue_;
};

inline bool detail::once_operation::ready() const noexcept { return flag_->is_done(); }

// The turn of who has entered: it ends with this, in success if he has said so.
class once_turn {
public:
    explicit once_turn(once_flag& entered) noexcept : flag_(entered) {}
    once_turn(const once_turn&) = delete;
    once_turn& operator=(const once_turn&) = delete;
    ~once_turn() { flag_.leave(succeeded_, unknown_place); }

    void succeeded() noexcept { succeeded_ = true; }

private:
    once_flag& flag_;
    bool succeeded_ = false;
};

// Throws stopped, and what f throws.
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
    if (flag.is_done() || !await(flag.async_enter(), unknown_place)) return;
    once_turn mine(flag);
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    mine.succeeded();
}

}  // namespace weft
