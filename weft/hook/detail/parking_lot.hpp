// parking_lot: where fibers and threads wait at the address of an object that is not weft's: a
// mutex, a semaphore, a condition of pthreads, a word.
//
// Design: the object keeps no list. A waiter is queued in a line that the address alone leads to,
// with a node in its own frame: a fiber is suspended, a thread sleeps in a futex, by the system
// call, below all hooks. An object of libc's therefore keeps its size and its initialisers, and
// fibers and threads wait in one order and can end each other's waits.
//
//      park(&s, {.what = "a semaphore"}, [&] { return value_of(s) == 0; });
//      ...
//      add_one(s); unpark(&s, 1);                        // any thread
//
// - still() is called under the line's lock: no unpark of the address falls between it and the
//   wait. It does not wait, and calls nothing of the lot.
// - An unpark for an object that has ended meanwhile may reach another object at the same address:
//   a waiter that is woken checks again.
// - A fiber waits as one if its hooks are on and it can be suspended here; otherwise its thread
//   sleeps, which nothing but an unpark and the deadline end.
// - A fiber that is being ended lets the other fibers of its loop run meanwhile, see beside.hpp.
// - errno stays what it was.
// - Not async-signal-safe: a line is locked for a few instructions.
// - After fork() the child's lines are empty.
//
// Model: test/model/parking_lot_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "weft/base/clock.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/hook/detail/parking_line.hpp"

namespace weft::detail {

struct fiber_core;

// How a wait in the lot has ended.
enum class unparked : unsigned char {
    woken,
    given,    // by an unpark_first whose give() was true
    refused,  // still() was false
    timed_out,
    stopped,
};

}  // namespace weft::detail

namespace weft::hook {

using weft::detail::unparked;

struct parking {
    const char* what;             // the awaited object, for reports: "a semaphore"
    time_point deadline = never;  // of weft::now()'s clock
    bool is_stopped = true;       // whether a stop of the fiber ends the wait
    // Another agent owns the awaited object and releases it soon: an executor that ends waits for
    // that, for a while, since libc declares that the call throws nothing (a kill would).
    bool is_owned = false;
    // Whether the fiber owns the awaited object at the address, and alone can release it: a wait
    // for it where that fiber can have no turn aborts the program. Null: the owner is not known, or
    // the wait ends by another cause.
    bool (*is_owner)(const void* address, const detail::fiber_core& f) noexcept = nullptr;
    std::uint32_t bits = ~0u;  // a wake names bits; one in common wakes it
    bool first = false;        // the waiter has waited before, and is queued first
    std::uintptr_t tag = 0;    // passed to the waker, see unpark_first
    // Called instead of the waiter's return, if its frame is destroyed (a kill) after it was
    // unparked: the wake then has to go to another waiter. Every lock of the lot is free.
    void (*abandoned)(const void* address, bool was_given) noexcept = nullptr;
    // Called once the waiter is queued, before it is suspended or sleeps, outside the line's lock:
    // there a condition unlocks its mutex.
    void (*entered)(void* of) noexcept = nullptr;
    void* entered_of = nullptr;
};

namespace lot {

using question = bool (*)(void* of);
using answer = void (*)(void* of, std::size_t woken, bool others) noexcept;
using handover = bool (*)(void* of, const parked* first, bool others) noexcept;

unparked park(const void* address, const parking& how, question still, void* of);
std::size_t unpark(const void* address, std::size_t most, std::uint32_t bits, answer after,
                   void* of) noexcept;
bool unpark_first(const void* address, handover give, void* of) noexcept;

template <class F>
void* address_of(F& f) noexcept {
    return const_cast<std::remove_const_t<F>*>(detail::address_of(f));
}

}  // namespace lot

template <class Still>
[[nodiscard]] unparked park(const void* address, const parking& how, Still still) {
    return lot::park(
        address, how, [](void* f) { return static_cast<bool>((*static_cast<Still*>(f))()); },
        lot::address_of(still));
}

// Wakes up to `most` waiters, from the front of the line. Returns the count. Any thread.
inline std::size_t unpark(const void* address, std::size_t most,
                          std::uint32_t bits = ~0u) noexcept {
    return lot::unpark(address, most, bits, [](void*, std::size_t, bool) noexcept {}, nullptr);
}
// As above; then, still under the line's lock, calls after(count, whether others wait on there).
template <class F>
std::size_t unpark(const void* address, std::size_t most, std::uint32_t bits, F after) noexcept {
    return lot::unpark(
        address, most, bits,
        [](void* f, std::size_t woken, bool others) noexcept {
            (*static_cast<F*>(f))(woken, others);
        },
        lot::address_of(after));
}

// Claims the first waiter and has give(it, or null, whether others wait on) decide, under the
// line's lock. True: the waiter's park() returns `given`. False: the waiter is woken like any
// other. Returns whether a waiter was claimed.
template <class F>
bool unpark_first(const void* address, F give) noexcept {
    return lot::unpark_first(
        address,
        [](void* f, const parked* first, bool others) noexcept {
            return static_cast<bool>((*static_cast<F*>(f))(first, others));
        },
        lot::address_of(give));
}

// Whether a waiter that one of the bits wakes is parked. A check that may be stale; exact for a
// caller that made its own store to the object first, if both that store and what still() reads are
// seq_cst.
bool has_parked(const void* address, std::uint32_t bits = ~0u) noexcept;

// As has_parked() for all addresses of a line, and cheaper: false is as exact.
bool may_have_parked(const void* address) noexcept;

}  // namespace weft::hook
