// parking_lot: where fibers and threads wait for something at an address that is not weft's: a
// mutex, a semaphore, a condition of pthreads, a word.
//
// Its one idea: the object keeps no list. A waiter stands in a line that the address alone
// leads to, with a place in its own frame: a fiber is suspended, a thread sleeps in a futex, by the
// system call, below all hooks. So an object of libc's keeps its size and its initialisers, fibers
// and threads wait for one thing in one order, and either ends the other's wait.
//
//      park(&s, {.what = "a semaphore"}, [&] { return value_of(s) == 0; });
//      ...
//      add_one(s); unpark(&s, 1);                        // any thread
//
// - still() is asked under the line's lock: no unpark of the address falls between it and the wait.
//   It does not wait, and calls nothing of the lot.
// - An unpark for an object that has ended meanwhile may reach another at the same address: a party
//   that is woken looks again.
// - A fiber waits as one if its hooks are on and it can be suspended here; otherwise its thread
//   sleeps, which nothing but an unpark and the deadline end.
// - One that is being ended has the others of its loop go on meanwhile, see beside.hpp.
// - errno stays what it was.
// - Not async-signal-safe: a line is locked for a few instructions.
// - After fork() the child's lines are empty.
//
// Model: test/model/parking_lot_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "weft/base/clock.hpp"
#include "weft/hook/parking_line.hpp"

namespace weft::detail {

struct fiber_core;

// How a wait in the lot has ended.
enum class unparked : unsigned char {
    woken,
    given,    // by an unpark_first that has handed something over
    refused,  // still() was false
    timed_out,
    stopped,
};

}  // namespace weft::detail

namespace weft::hook {

using weft::detail::unparked;

struct parking {
    const char* what;             // it waits for, for reports: "a semaphore"
    time_point deadline = never;  // of weft::now()'s clock
    bool is_stopped = true;       // whether a stop of the fiber ends the wait
    // Another party has what is waited for, and gives it up soon: an executor that ends waits for
    // that, for a while, as libc declares that nothing is thrown there (a kill).
    bool is_owned = false;
    // Whether the fiber has what is waited for at the address, and alone may give it up: to wait
    // for that where it can have no turn ends the program. Null: that is not known, or the wait has
    // an end of its own.
    bool (*is_owner)(const void* address, const detail::fiber_core& f) noexcept = nullptr;
    std::uint32_t bits = ~0u;  // a wake names bits; one in common wakes it
    bool first = false;        // it has waited before, and goes in front of all
    std::uintptr_t tag = 0;    // told to what hands over, see unpark_first
    // In the place of the party's return, where its frame is destroyed (a kill) after it was
    // unparked: what it was woken for is somebody else's. Any lock is free.
    void (*abandoned)(const void* address, bool was_given) noexcept = nullptr;
    // Once the party stands in line, before it is suspended or sleeps, outside of the line's lock:
    // where a condition unlocks its mutex.
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
    return const_cast<std::remove_const_t<F>*>(std::addressof(f));
}

}  // namespace lot

template <class Still>
[[nodiscard]] unparked park(const void* address, const parking& how, Still still) {
    return lot::park(
        address, how, [](void* f) { return static_cast<bool>((*static_cast<Still*>(f))()); },
        lot::address_of(still));
}

// Wakes up to `most`, the first in line; how many. Any thread.
inline std::size_t unpark(const void* address, std::size_t most,
                          std::uint32_t bits = ~0u) noexcept {
    return lot::unpark(address, most, bits, [](void*, std::size_t, bool) noexcept {}, nullptr);
}
// The same, and then, still under the line's lock, after(how many, whether others wait on there).
template <class F>
std::size_t unpark(const void* address, std::size_t most, std::uint32_t bits, F after) noexcept {
    return lot::unpark(
        address, most, bits,
        [](void* f, std::size_t woken, bool others) noexcept {
            (*static_cast<F*>(f))(woken, others);
        },
        lot::address_of(after));
}

// Claims the first in line and has give(it, or null, whether others wait on) decide, under the
// line's lock: true, and its park() says `given`; false, and it is woken like any. Returns whether
// there was one.
template <class F>
bool unpark_first(const void* address, F give) noexcept {
    return lot::unpark_first(
        address,
        [](void* f, const parked* first, bool others) noexcept {
            return static_cast<bool>((*static_cast<F*>(f))(first, others));
        },
        lot::address_of(give));
}

// A look that may be stale; exact for a caller that made its own store to the object first, if both
// that store and what still() reads are seq_cst. Of those that one of the bits wakes.
bool has_parked(const void* address, std::uint32_t bits = ~0u) noexcept;

// The same for all addresses of a line, and cheaper: false is as exact.
bool may_have_parked(const void* address) noexcept;

}  // namespace weft::hook
