// fork_deque: a worker's deque of work that it has spawned and others may steal, and how other
// workers learn of it.
//
// Design: an entry is one word: a frame, which is resumed outside any flow; or, with its lowest bit
// set, a runnable, for work that has a flow already.
//
// Model: test/model/steal_deque_test.cpp
#pragma once

#include <coroutine>
#include <cstdint>

#include "weft/base/detail/tls.hpp"
#include "weft/queue/detail/idle_set.hpp"
#include "weft/queue/detail/steal_deque.hpp"
#include "weft/wait/flow.hpp"
#include "weft/wait/runnable.hpp"

namespace weft::detail {

class fork_deque {
public:
    fork_deque(executor& home, idle_set& others) noexcept : home_(&home), others_(&others) {}
    fork_deque(const fork_deque&) = delete;
    fork_deque& operator=(const fork_deque&) = delete;

    executor* home() const noexcept { return home_; }

    // By the owner: pushes work that any worker may run. False: no memory.
    [[nodiscard]] bool push(frame& f) noexcept {
        if (!deque_.try_push(&f)) return false;
        if (const unsigned i = others_->claim(); i != idle_set::none) [[unlikely]]
            wake(i);
        return true;
    }
    [[nodiscard]] bool push(runnable& r) noexcept {
        if (!deque_.try_push(tagged(r))) return false;
        if (const unsigned i = others_->claim(); i != idle_set::none) wake(i);
        return true;
    }
    // By the owner: takes f back if it is on top, and was not stolen.
    [[nodiscard]] bool take_back(frame& f) noexcept { return deque_.try_pop(&f); }
    // By the owner: takes the newest; its handle is null if there is none.
    ready_turn pop() noexcept { return entry_of(deque_.pop()); }

    // Any thread, as for steal_deque.
    steal_mark mark() const noexcept { return deque_.mark(); }
    ready_turn steal(steal_mark m) noexcept { return entry_of(deque_.steal(m).item); }
    // By the owner: takes the oldest, for which only thieves compete.
    ready_turn take_eldest() noexcept { return steal(mark()); }
    bool empty() const noexcept { return deque_.count() == 0; }

protected:
    ~fork_deque() = default;
    virtual void wake(unsigned worker) noexcept = 0;

private:
    static void* tagged(runnable& r) noexcept {
        return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&r) | 1);
    }
    static ready_turn entry_of(void* word) noexcept {
        const auto bits = reinterpret_cast<std::uintptr_t>(word);
        if ((bits & 1) == 0) return {std::coroutine_handle<>::from_address(word), nullptr};
        const auto* const r = reinterpret_cast<const runnable*>(bits & ~std::uintptr_t{1});
        return {r->handle, r->of};
    }

    executor* const home_;
    idle_set* const others_;
    steal_core deque_{256, asymmetric_fence()};
};

}  // namespace weft::detail

WEFT_DECLARE_THREAD_LOCAL(weft::detail::fork_deque*, weft_tls_fork_place, this_thread_forks);

namespace weft::detail {

// The deque of the worker that runs the caller; null on any other executor.
inline fork_deque* fork_place_here() noexcept {
    fork_deque* const p = this_thread_forks();
    return p != nullptr && p->home() == current_executor() ? p : nullptr;
}

}  // namespace weft::detail
