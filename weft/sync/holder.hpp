// holder: who has a lock, as one word: a flow, or "a coroutine that is no task of its own".
//
// Its one idea: a flow that is a single line is one party, and can be held to what it did: a fiber,
// a thread, a task that was spawned or is waited for. A C++20 coroutine that was begun by hand may
// run beside others in the flow that began it, or in none, and nothing tells one such from another:
// what they lock by co_await has no known holder, and it is not noticed who unlocks it.
//
//      a fiber, a task        its flow's address: it ends the program if it ends and holds a lock
//      a thread               its number, which no later one has, and a bit: it may have ended
//      the unknown            the bit alone
//
// Limits: a coroutine that blocks or tries, in place of co_await, does so for the fiber or thread
// that runs it. A task that begins others by hand is one party with them.
#pragma once

#include <cstdint>
#include <source_location>

#include "weft/sync/word_queue.hpp"
#include "weft/wait/thread_host.hpp"

namespace weft::detail {

using holder = std::uintptr_t;

// No flow has this bit in its address.
inline constexpr holder unknown_holder = word_queue::unit;
inline constexpr holder numbers = 2 * unknown_holder;
static_assert(alignof(flow) >= numbers, "a flow's address is a value of a word_queue, and even");

inline holder holder_of(const flow* f) noexcept { return reinterpret_cast<holder>(f); }
inline holder holder_of(const thread_host& t) noexcept {
    return t.number() * numbers | unknown_holder;
}

// The plain thread, or the unknown.
holder holder_without_flow() noexcept;

// Whoever runs here, if he does not co_await.
inline holder holder_here() noexcept {
    const flow* f = current_flow();
    return f != nullptr ? holder_of(f) : holder_without_flow();
}

// The coroutine that runs here: its flow, if that cannot block and so is a task's.
inline holder holder_in_coroutine() noexcept {
    const flow* f = current_flow();
    return f != nullptr && f->kind->suspend == nullptr ? holder_of(f) : unknown_holder;
}

// Whoever waits by w: a coroutine, or one who blocks, and then it is his own handle that is run.
inline holder holder_of(const waiter& w) noexcept {
    const flow* f = w.of;
    if (f == nullptr) return unknown_holder;
    if (f->kind->suspend != nullptr && w.handle != f->handle) return unknown_holder;
    if (const thread_host* const t = thread_host::of_own(*f)) [[unlikely]]
        return holder_of(*t);
    return holder_of(f);
}

// Whoever runs here has got a lock, or given one up: a flow that ends with one ends the program.
inline void count_lock(int n) noexcept {
    if (flow* f = current_flow()) f->locks += static_cast<std::uint32_t>(n);
}

// A fiber has tried a lock in vain. So many times in one round of its executor, in which few others
// have a turn or none, and one line tells which fiber it is, and where: it may wait for what only
// its own thread can give it.
inline constexpr unsigned many_failed_tries = 10'000;
void count_failed_try(std::source_location place) noexcept;

// Ends the program, and names the flow in which it happens.
[[noreturn]] void fail_unknown(const char* rule, std::source_location place) noexcept;

// What `what` (a thing and a rule: "unlock of a mutex") was done by, and against which other. Ends
// the program.
[[noreturn]] void fail_against(const char* what, holder by, const char* but, holder other,
                               std::source_location place) noexcept;

}  // namespace weft::detail
