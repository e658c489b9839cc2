// managed_state: the word that decides how a managed task ends.
//
//   bits   0..2     3..5     6          7       8        9       10         11               12
//          cause    reason   launched   begun   forced   taken   finished   awaits_arrival   hooked
//
// Design: the end of a task and its beginning meet in one word, so that the first cause wins and
// each side knows what is left for it to do:
//
//   created   (not launched)   decide -> drop    the task's function is never called: ended here
//   launched, not begun        decide -> wait    its first turn is on its way, and sees it
//   begun                      decide -> ask     it is requested to stop, or killed
//   has a cause                decide -> lost
//
// Invariants:
// S1  the cause is written once; `reason` with it
// S2  `begun` is never set after a cause
// S3  a kill is sent only between `begun` and `finished`
// S4  `awaits_arrival` is set while the kill has found its task on its way to another executor; the
//     transition that clears it takes over the kill: the task's when it arrives, the sender's when
//     it checks once more, or the end's
// S5  `hooked` is never set after `finished`, and is set before the first hook is put where the end
//     looks for it, under the lock of that place: so the end looks there only if it is set
//
// Model: test/model/managed_state_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/detail/atomic.hpp"
#include "weft/manager/managed_status.hpp"
#include "weft/stop/stop_source.hpp"

namespace weft::detail {

class managed_state {
public:
    // What the caller owes after it has decided.
    enum class owed : std::uint8_t { nothing, drop, wait, ask };

    // `launched`: it is about to be launched, and no other thread can see it yet.
    explicit managed_state(bool launched) noexcept : word_(launched ? launched_bit : 0) {}

    // The caller launches it. False: it was launched before, or it has a cause.
    [[nodiscard]] bool start() noexcept { return set(launched_bit, cause_mask | launched_bit); }
    // In its first turn. False: it has a cause, and its function is not to be called. S2
    [[nodiscard]] bool begin() noexcept { return set(begun_bit, cause_mask); }

    // The first call wins: the others owe nothing. S1
    [[nodiscard]] owed decide(managed_status cause, stop_reason reason) noexcept {
        unsigned seen = word_.load(std::memory_order_relaxed);  // checked by the exchange
        do {
            if ((seen & cause_mask) != 0) return owed::nothing;
            // Acquire and release: pairs with start, begin and the readers of the cause.
        } while (!word_.compare_exchange_weak(seen, seen | word_of(cause, reason),
                                              std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
        if ((seen & launched_bit) == 0) return owed::drop;
        return (seen & begun_bit) == 0 ? owed::wait : owed::ask;
    }

    // A kill is sent once. False: it was sent before; or the task has not begun and never will, or
    // its function has ended. S3
    [[nodiscard]] bool force() noexcept {
        // Acquire and release: pairs with begin and finish.
        const unsigned before = word_.fetch_or(forced_bit, std::memory_order_acq_rel);
        return (before & (forced_bit | begun_bit | finished_bit)) == begun_bit;
    }
    // The kill waits for the task's arrival. False: it will not arrive, the function has ended. S4
    [[nodiscard]] bool await_arrival() noexcept { return set(arrival_bit, finished_bit); }
    // The caller takes over the kill, if one is waiting. S4
    [[nodiscard]] bool arrive() noexcept {
        // Relaxed: ordered by flow::visitors, F4. A kill waits very rarely.
        if ((word_.load(std::memory_order_relaxed) & arrival_bit) == 0) return false;
        return (word_.fetch_and(~arrival_bit, std::memory_order_acq_rel) & arrival_bit) != 0;
    }
    // Its function has ended, or was dropped; this is the cause if it has none. S1, S3. Returns
    // whether a kill was waiting, which the caller then takes over. S4
    [[nodiscard]] bool finish(managed_status cause, stop_reason reason) noexcept {
        unsigned seen = word_.load(std::memory_order_relaxed);  // checked by the exchange
        unsigned wanted;
        do {
            wanted = (seen | finished_bit) & ~arrival_bit;
            if ((seen & cause_mask) == 0) wanted |= word_of(cause, reason);
            // Acquire and release: as in decide.
        } while (!word_.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
        return (seen & arrival_bit) != 0;
    }
    // A hook is about to be put into the task's list, under its lock. False: the function has
    // ended, and the list is not read again. S5
    [[nodiscard]] bool expect_hook() noexcept { return set(hooked_bit, finished_bit); }
    // After finish(). Relaxed: its own exchange has read it, and it does not change any more. S5
    bool has_hooks() const noexcept {
        return (word_.load(std::memory_order_relaxed) & hooked_bit) != 0;
    }
    // Whether a kill was sent.
    bool is_forced() const noexcept {
        return (word_.load(std::memory_order_acquire) & forced_bit) != 0;  // pairs with force
    }
    // Whether the caller is the first to take what the task returned. Relaxed: only decides which;
    // the value is ordered by is_finished().
    [[nodiscard]] bool take() noexcept {
        return (word_.fetch_or(taken_bit, std::memory_order_relaxed) & taken_bit) == 0;
    }

    bool has_begun() const noexcept {
        return (word_.load(std::memory_order_acquire) & begun_bit) != 0;  // pairs with begin
    }
    bool is_decided() const noexcept {
        return (word_.load(std::memory_order_acquire) & cause_mask) != 0;  // pairs with decide
    }
    bool is_finished() const noexcept {
        return (word_.load(std::memory_order_acquire) & finished_bit) != 0;  // pairs with finish
    }
    // `created` while there is no cause.
    managed_status cause() const noexcept {
        const unsigned c = word_.load(std::memory_order_acquire) & cause_mask;  // as above
        if (c == 0) return managed_status::created;
        return static_cast<managed_status>(c + static_cast<unsigned>(managed_status::done) - 1);
    }
    stop_reason reason() const noexcept {
        const unsigned w = word_.load(std::memory_order_relaxed);  // it is all in the word
        return static_cast<stop_reason>((w & reason_mask) >> reason_shift);
    }

private:
    static constexpr unsigned cause_mask = 7;
    static constexpr unsigned reason_shift = 3;
    static constexpr unsigned reason_mask = 7u << reason_shift;
    static constexpr unsigned launched_bit = 1u << 6;
    static constexpr unsigned begun_bit = 1u << 7;
    static constexpr unsigned forced_bit = 1u << 8;
    static constexpr unsigned taken_bit = 1u << 9;
    static constexpr unsigned finished_bit = 1u << 10;
    static constexpr unsigned arrival_bit = 1u << 11;
    static constexpr unsigned hooked_bit = 1u << 12;

    static unsigned word_of(managed_status cause, stop_reason reason) noexcept {
        return (static_cast<unsigned>(cause) - static_cast<unsigned>(managed_status::done) + 1) |
               static_cast<unsigned>(reason) << reason_shift;
    }
    // Acquire, also where it is refused: pairs with decide and finish. So a refused caller sees
    // what came before the end, as a hook that is too late has to.
    bool set(unsigned bits, unsigned refused) noexcept {
        unsigned seen = word_.load(std::memory_order_acquire);
        do {
            if ((seen & refused) != 0) return false;
            // Release: the same.
        } while (!word_.compare_exchange_weak(seen, seen | bits, std::memory_order_acq_rel,
                                              std::memory_order_acquire));
        return true;
    }

    atomic<unsigned> word_;
};

}  // namespace weft::detail
