// state_word: the state of a coroutine and its rare properties, in one 16-bit word.
//
//      15      8 7       0
//     | flags   | state   |      one load shows a resume whether the frequent path applies
//
//                resume               resume
//     ready ---------------> running <-------> suspended      running: also while it waits for one
//       |                    |  yield ^            |          that it resumed itself
//       | kill        end    |                     | kill
//       v                    v                     v
//     killed                done              (running, unwinds) ---> killed
//
// Writers: the agent that holds the coroutine running (its resumer, or the coroutine itself), and
// the winner of claim().
//
// Model: test/model/state_word_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"
#include "weft/coroutine/coroutine_state.hpp"

namespace weft::detail {

enum coroutine_flag : std::uint16_t {
    own_fp = 0x100,           // keeps its own floating-point environment
    on_shared_stack = 0x200,  // is assigned to a shared stack
    being_killed = 0x400,     // its killer waits
    handed = 0x800,           // was entered by switch_to: its resumer does not know it yet
};

class state_word {
public:
    using bits = std::uint16_t;

    static constexpr bits of(coroutine_state s, int flags = 0) noexcept {
        return static_cast<bits>(static_cast<int>(s) | flags);
    }

    static constexpr int flags(bits word) noexcept { return word & 0xff00; }
    static constexpr coroutine_state state(bits word) noexcept {
        return static_cast<coroutine_state>(word & 0xff);
    }

    // Acquire: pairs with set(), so that a thread that reads `suspended` sees the saved context.
    bits load() const noexcept { return word_.load(std::memory_order_acquire); }
    coroutine_state state() const noexcept { return state(load()); }
    // Relaxed: a flag is read and changed by the thread that runs or has claimed the coroutine,
    // which load() or claim() has ordered after the thread before.
    bool has(coroutine_flag f) const noexcept {
        return (word_.load(std::memory_order_relaxed) & f) != 0;
    }

    // Release: pairs with load() and claim().
    void set(coroutine_state s) noexcept { word_.store(with(s), std::memory_order_release); }
    // Relaxed: as has().
    void raise(coroutine_flag f) noexcept { write(word_.load(std::memory_order_relaxed) | f); }
    void lower(coroutine_flag f) noexcept { write(word_.load(std::memory_order_relaxed) & ~f); }

    // The frequent transitions, where the whole word is known. hold() is relaxed: other threads
    // synchronise with the release that ends the hold.
    void hold(bits word) noexcept { word_.store(word, std::memory_order_relaxed); }
    void set_all(bits word) noexcept { word_.store(word, std::memory_order_release); }

    // Changes `from` to running; false if the state is another. One of several threads wins.
    bool claim(coroutine_state from) noexcept {
        bits seen = with(from);
        // Acquire: as load(). Relaxed on failure: nothing is read.
        return word_.compare_exchange_strong(seen, with(coroutine_state::running),
                                             std::memory_order_acquire, std::memory_order_relaxed);
    }

private:
    // Relaxed: as has(); for claim() the flags are a guess that the exchange tests.
    bits with(coroutine_state s) const noexcept {
        return of(s, flags(word_.load(std::memory_order_relaxed)));
    }
    // Relaxed: the next set() or set_all() publishes it.
    void write(int w) noexcept { word_.store(static_cast<bits>(w), std::memory_order_relaxed); }

    atomic<bits> word_{static_cast<bits>(coroutine_state::ready)};
};

}  // namespace weft::detail
