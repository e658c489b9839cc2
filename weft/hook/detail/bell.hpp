// bell: how a signal handler wakes fibers that are parked at an address. The handler takes no lock,
// because the interrupted code may hold it. The handler leaves a count, and a thread that waits at
// the bell unparks for it.
//
//      a fiber that waits       ring(), in a handler           the thread at the bell
//      rope: a place for the    (the word was changed)         answer(): counts -> 0; unparks as
//        address; fence         fence                            many as were rung for
//      parks unless it need     place of the address? its      sleep(): until `rings_` is another
//        not                      count, the set's mark,
//                                 `rings_`, futex_wake
//
// Design: a slot belongs to an address as long as a fiber waits there. Only fibers assign and free
// slots, under a lock. A ring reads the slots, and finds a fiber's slot if that fiber does not see
// what was changed. A ring that counts for an address whose slot has passed to another address
// wakes a fiber for no reason, and that fiber checks again.
//
//   bell<256, 8> b;
//   { const bell<256, 8>::rope mine(b, s); if (mine) park(s, ...); }   // a fiber
//   ::sem_post(s); b.ring(s);                                         // anywhere
//   for (;;) b.sleep(b.answer([](const void* s, unsigned n) { unpark(s, n); }));
//
// Limits: of the addresses of one set, as many can have waiting fibers at once as the set has ways;
// a rope reports whether it has a slot.
//
// Model: test/model/bell_test.cpp
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "weft/base/detail/asymmetric_fence.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/fibonacci_hash.hpp"
#include "weft/base/detail/futex.hpp"
#include "weft/base/detail/spin_lock.hpp"

namespace weft::hook {

template <std::size_t set_count, std::size_t ways>
class bell {
    static_assert(set_count % 64 == 0 && std::has_single_bit(set_count));

    struct place {
        // Orders: relaxed, it is written under the set's lock, and the fences of ring() and of a
        // rope order it for the others: if the ring's fence is the later one, then what acquires
        // the ring's count reads the address; if it is not, the rope's fiber sees what was changed.
        atomic<const void*> address{nullptr};
        atomic<std::uint32_t> rings{0};
        std::uint32_t fibers = 0;  // under the set's lock
    };
    struct set {
        detail::spin_lock lock;
        place places[ways];
    };

public:
    constexpr bell() noexcept = default;
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;

    // Async-signal-safe. Called after a store to the awaited object.
    void ring(const void* address) noexcept {
        weft::detail::full_fence();  // pairs with a rope's
        const std::size_t at = set_of(address);
        for (place& p : sets_[at].places) {
            // Relaxed, both: the fence orders them.
            if (p.address.load(std::memory_order_relaxed) != address) continue;
            p.rings.fetch_add(1, std::memory_order_relaxed);
            // Release, both: an answer that sees them sees the count.
            marks_[at / 64].fetch_or(std::uint64_t{1} << at % 64, std::memory_order_release);
            prompt();
            return;
        }
    }
    // Has the thread at the bell check the counts.
    void prompt() noexcept {
        rings_.fetch_add(1, std::memory_order_release);  // pairs with answer()
        weft::detail::futex_wake(&rings_);
    }

    // Called by one thread: calls unparks(address, how many) for all rings so far. Returns the
    // value that sleep() takes.
    template <class F>
    std::uint32_t answer(F unparks) noexcept {
        const std::uint32_t seen = rings_.load(std::memory_order_acquire);  // pairs with prompt()
        for (std::size_t i = 0; i < set_count / 64; ++i) {
            // Acquire: pairs with ring().
            std::uint64_t marks = marks_[i].exchange(0, std::memory_order_acquire);
            for (; marks != 0; marks &= marks - 1)
                answer_set(sets_[64 * i + static_cast<std::size_t>(std::countr_zero(marks))],
                           unparks);
        }
        return seen;
    }
    void sleep(std::uint32_t seen) noexcept { weft::detail::futex_wait(rings_, seen); }

    // Called in the single thread of a forked child: the fibers are in the parent.
    void clear_all() noexcept {
        for (set& s : sets_) new (&s) set;
    }

    // A slot for a fiber that waits.
    class rope {
    public:
        rope(bell& of, const void* address) noexcept : set_(of.sets_[set_of(address)]) {
            const std::lock_guard held(set_.lock);
            // Relaxed, here and below: addresses are written under the lock alone, and rings read
            // them behind a fence.
            for (place& p : set_.places) {
                if (p.fibers == 0 && place_ == nullptr) place_ = &p;
                if (p.fibers == 0 || p.address.load(std::memory_order_relaxed) != address) continue;
                place_ = &p;
                break;
            }
            if (place_ == nullptr) return;
            if (place_->fibers++ == 0) place_->address.store(address, std::memory_order_relaxed);
            // Pairs with ring(): the ring finds the slot, or the fiber sees what was changed
            // before.
            weft::detail::full_fence();
        }
        rope(const rope&) = delete;
        rope& operator=(const rope&) = delete;
        ~rope() {
            if (place_ == nullptr) return;
            const std::lock_guard held(set_.lock);
            if (--place_->fibers == 0) place_->address.store(nullptr, std::memory_order_relaxed);
        }
        explicit operator bool() const noexcept { return place_ != nullptr; }

    private:
        set& set_;
        place* place_ = nullptr;
    };

private:
    static std::size_t set_of(const void* address) noexcept {
        return weft::detail::fibonacci_hash(address, std::countr_zero(set_count));
    }
    template <class F>
    static void answer_set(set& s, F& unparks) noexcept {
        for (place& p : s.places) {
            // Relaxed: a later ring leaves a mark again.
            if (p.rings.load(std::memory_order_relaxed) == 0) continue;
            // Acquire: pairs with the fence of each ring that is counted, whose mark is yet to
            // come.
            const std::uint32_t n = p.rings.exchange(0, std::memory_order_acquire);
            if (const void* const at = p.address.load(std::memory_order_relaxed)) unparks(at, n);
        }
    }

    set sets_[set_count];
    atomic<std::uint64_t> marks_[set_count / 64] = {};  // sets that have a count
    atomic<std::uint32_t> rings_{0};
};

}  // namespace weft::hook
