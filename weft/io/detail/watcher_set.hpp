// watcher_set: the drivers that know of one descriptor: those that watch it, those that were given
// calls on it, and those that were found unable to watch it.
//
// Design: usually there is one driver, which is stored in the word itself; a second one makes a
// list. So several loops may wait for one descriptor, without a limit, and the set of a descriptor
// that one loop waits for takes eight bytes.
//
//      word:   0                          no driver
//              driver | what              one, and what it does
//              list   | is_list           several, each as above
//
// Written under the lock of its entry; a driver may look for itself without the lock.
//
// Model: test/model/io_entry_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "weft/base/detail/atomic.hpp"

namespace weft {

class io_driver;

namespace detail {

class watcher_set {
public:
    static constexpr std::uintptr_t watches = 1;   // reports events
    static constexpr std::uintptr_t serves = 2;    // was given calls
    static constexpr std::uintptr_t room = 8;      // also room to write; only if it watches
    static constexpr std::uintptr_t refuses = 16;  // was found unable to watch

    watcher_set() noexcept = default;
    watcher_set(const watcher_set&) = delete;
    ~watcher_set() { clear(); }

    // A check without the lock: d is the only one, and does `what`. If not, look it up under the
    // lock.
    bool is_only(const io_driver& d, std::uintptr_t what) const noexcept {
        // Relaxed: d's own thread alone adds d, and what removes it ends d's calls after that.
        const std::uintptr_t w = word_.load(std::memory_order_relaxed);
        return (w & ~all_bits) == address_of(d) && (w & what) != 0;
    }

    // All of these under the lock.
    bool has(const io_driver& d, std::uintptr_t what) const noexcept;
    [[nodiscard]] bool add(io_driver& d, std::uintptr_t what) noexcept;  // false: no memory
    // True: it was there. Removing `watches` removes `room` too.
    bool remove(const io_driver& d, std::uintptr_t what) noexcept;
    void clear() noexcept;
    // Takes over the drivers of `from` for which f(driver, what) is true; `from` is empty
    // afterwards. Precondition: this set is empty.
    template <class F>
    void take(watcher_set& from, F&& f) {
        const std::uintptr_t w = from.word();
        from.word_.store(0, std::memory_order_relaxed);
        if (w == 0) return;
        list* const l = list_of(w);
        if (l == nullptr) {
            if (f(driver_of(w), w & (watches | serves))) word_.store(w, std::memory_order_relaxed);
            return;
        }
        word_.store(w, std::memory_order_relaxed);
        unsigned kept = 0;
        for (unsigned i = 0; i != l->count; ++i)
            if (f(driver_of(l->items[i]), l->items[i] & (watches | serves)))
                l->items[kept++] = l->items[i];
        l->count = kept;
    }
    // Calls f(driver, what) for each.
    template <class F>
    void for_each(F&& f) const {
        const std::uintptr_t w = word();
        const list* const l = list_of(w);
        if (w == 0) return;
        if (l == nullptr) return f(driver_of(w), w & (watches | serves));
        for (unsigned i = 0; i != l->count; ++i)
            f(driver_of(l->items[i]), l->items[i] & (watches | serves));
    }

private:
    static constexpr std::uintptr_t is_list = 4;
    static constexpr std::uintptr_t all_bits = 31;

    struct alignas(all_bits + 1) list {
        unsigned count = 0;
        unsigned room = 0;
        std::unique_ptr<std::uintptr_t[]> items;
    };

    static std::uintptr_t address_of(const io_driver& d) noexcept {
        return reinterpret_cast<std::uintptr_t>(&d);
    }
    static io_driver& driver_of(std::uintptr_t w) noexcept {
        return *reinterpret_cast<io_driver*>(w & ~all_bits);
    }
    static list* list_of(std::uintptr_t w) noexcept {
        return (w & is_list) != 0 ? reinterpret_cast<list*>(w & ~all_bits) : nullptr;
    }
    std::uintptr_t word() const noexcept { return word_.load(std::memory_order_relaxed); }
    // The index of d in the list; its count: not in the list.
    static unsigned place_of(const list& l, const io_driver& d) noexcept;
    [[nodiscard]] static bool push(list& l, std::uintptr_t item) noexcept;

    // Orders: relaxed, it is written under the entry's lock; is_only() alone reads it without.
    atomic<std::uintptr_t> word_{0};
};

}  // namespace detail
}  // namespace weft
