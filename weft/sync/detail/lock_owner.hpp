// lock_owner: the owner of a lock, as one word: a flow, a plain thread, or "a coroutine that is no
// task of its own".
//
// Design: a flow that runs one step at a time is one owner, and its lock calls can be checked: a
// fiber, a thread, a task that was spawned or is awaited. A C++20 coroutine whose start() or
// resume() user code calls may run beside others in the flow that started it, or outside any flow,
// and such coroutines cannot be distinguished. A lock that one of them takes by co_await has an
// unknown owner, and the agent that unlocks it is not checked.
//
//      a fiber, a task     the flow's address; a flow that ends as an owner aborts the program
//      a thread            the thread's number, which no later thread has, and a bit: the thread
//                          may have ended
//      unknown             the bit alone
//
// Limits: if a coroutine calls lock() or try_lock() in place of co_await, the owner is the flow or
// thread that runs the coroutine. A task and the coroutines that it resumes itself are one owner.
#pragma once

#include <cstdint>
#include <source_location>

#include "weft/sync/detail/atomic_wait_queue.hpp"
#include "weft/wait/detail/thread_executor.hpp"

namespace weft::detail {

using lock_owner = std::uintptr_t;

// No flow has this bit in its address.
inline constexpr lock_owner anonymous_owner = atomic_wait_queue::unit;
inline constexpr lock_owner numbers = 2 * anonymous_owner;
static_assert(alignof(flow) >= numbers,
              "a flow's address is a value of an atomic_wait_queue, and even");

inline lock_owner lock_owner_of(const flow* f) noexcept { return reinterpret_cast<lock_owner>(f); }
inline lock_owner lock_owner_of(const thread_executor& t) noexcept {
    return static_cast<lock_owner>(t.number()) * numbers | anonymous_owner;
}

// The plain thread that runs here, or anonymous_owner.
lock_owner lock_owner_without_flow() noexcept;

// The agent that runs here, for a call without co_await.
inline lock_owner lock_owner_here() noexcept {
    const flow* f = current_flow();
    return f != nullptr ? lock_owner_of(f) : lock_owner_without_flow();
}

// The coroutine that runs here: its flow, if that flow cannot block and is therefore a task's; else
// anonymous_owner.
inline lock_owner lock_owner_in_coroutine() noexcept {
    const flow* f = current_flow();
    return f != nullptr && f->kind->suspend == nullptr ? lock_owner_of(f) : anonymous_owner;
}

// The agent that waits by w: a coroutine, or a flow that blocks, if w runs that flow's own handle.
inline lock_owner lock_owner_of(const waiter& w) noexcept {
    const flow* f = w.of;
    if (f == nullptr) return anonymous_owner;
    if (f->kind->suspend != nullptr && w.handle != f->handle) return anonymous_owner;
    if (const thread_executor* const t = thread_executor::of_own(*f)) [[unlikely]]
        return lock_owner_of(*t);
    return lock_owner_of(f);
}

// The flow that runs here has locked (n = 1) or unlocked (n = -1) a lock. A flow that ends while it
// owns a lock aborts the program.
inline void count_lock(int n) noexcept {
    if (flow* f = current_flow()) f->locks += static_cast<std::uint32_t>(n);
}

// Counts a failed try_lock() of a fiber. At many_failed_tries of them in one iteration of its
// executor, one line reports the fiber and the call: the fiber may wait for an unlock that only its
// own thread can bring, since few other flows have a turn in that iteration, or none.
inline constexpr unsigned many_failed_tries = 10'000;
void count_failed_try(std::source_location caller) noexcept;

// Aborts; the message names the flow that runs here.
[[noreturn]] void fail_unknown(const char* rule, std::source_location caller) noexcept;

// Aborts. The message has `what` (an object and a rule: "unlock of a mutex"), the agent `by`,
// and after `but` the agent `other`, if it is not 0.
[[noreturn]] void fail_not_owner(const char* what, lock_owner by, const char* but, lock_owner other,
                                 std::source_location caller) noexcept;

}  // namespace weft::detail
