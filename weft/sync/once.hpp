// once_flag, call_once: a function that is called by the first who comes; the others wait until it
// has returned. std's, for fibers, coroutines and threads.
//
// If it throws, the exception goes to who called it, and the first in line calls it again.
//
//   weft::once_flag loaded;
//   weft::call_once(loaded, [&] { table = load(); });
//
//   if (co_await loaded.async_enter()) {           // in a coroutine: true for one
//       table = co_await async_load();
//       loaded.leave(true);                        // false: let the next one try
//   }
#pragma once

#include <functional>
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

    // Waits until it is done, or the caller's turn: then true, and the caller owes leave().
    detail::once_operation async_enter() noexcept { return detail::once_operation(*this); }
    void leave(bool succeeded) noexcept;

private:
    friend class detail::once_operation;
    static constexpr detail::word_queue::word fresh = 0;
    static constexpr detail::word_queue::word running = detail::word_queue::unit;
    static constexpr detail::word_queue::word done = 2 * detail::word_queue::unit;

    detail::word_queue queue_;
};

inline bool detail::once_operation::ready() const noexcept { return flag_->is_done(); }

// Throws stopped, and what f throws.
template <class F, class... Args>
void call_once(once_flag& flag, F&& f, Args&&... args) {
    if (flag.is_done() || !await(flag.async_enter())) return;
    struct leaving {
        once_flag& flag;
        bool succeeded = false;
        ~leaving() { flag.leave(succeeded); }
    } at_the_end{flag};
    std::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    at_the_end.succeeded = true;
}

}  // namespace weft
