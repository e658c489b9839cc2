// rule_table: caches a value that was computed once per address; the look-up takes no lock.
//
// Design: an open-addressed table of slots, published whole and replaced whole. A caller that has
// computed a value stores it if no other thread is writing, and otherwise drops it.
//
//   const Value* v = table.find(address);    // null: it is not there
//   if (v == nullptr) table.keep(address, found_out);
//
// Invariants:
// I1. A slot's value is written before its address, and neither changes afterwards.
// I2. A table is at most half full, so a search ends at an empty slot.
// I3. A published table is never freed, because a reader may still be in it. Each table is four
//     times as large as the previous one, so all old tables together are a third of the newest.
// I4. Only the thread that has set `writing` writes. No thread waits for it.
//
// Model: test/model/rule_table_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/fibonacci_hash.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

template <class Value>
struct alignas(cache_line_bytes) rule_slot {
    // 0: empty. Release by the writer, acquire by every reader.
    atomic<std::uintptr_t> address;
    Value value;
};

template <class Value>
class rule_table {
public:
    using slot = rule_slot<Value>;
    // Returns `count` slots, all zeros, that are never freed; null if there is no memory.
    using supply = slot* (*)(std::size_t count) noexcept;

    // `first` has 2^bits slots, all zeros.
    constexpr rule_table(slot* first, unsigned bits, supply more) noexcept
        : tables_{{first, bits}}, more_(more) {}
    rule_table(const rule_table&) = delete;
    rule_table& operator=(const rule_table&) = delete;

    // Any thread.
    const Value* find(std::uintptr_t address) const noexcept {
        // Acquire: pairs with grow().
        const slot& s = place_of(*in_use_.load(std::memory_order_acquire), address);
        return s.address.load(std::memory_order_acquire) == address ? &s.value : nullptr;
    }
    // Any thread; it may have no effect.
    void keep(std::uintptr_t address, const Value& value) noexcept {
        if (writing_.exchange(true, std::memory_order_acquire))
            return;  // I4; pairs with the store below
        // Relaxed: only the writer changes it.
        const table* t = in_use_.load(std::memory_order_relaxed);
        if (used_ >= std::size_t{1} << (t->bits - 1)) t = grow(t);  // I2
        if (t != nullptr && put(*t, address, value)) ++used_;
        writing_.store(false, std::memory_order_release);  // pairs with the exchange above
    }

private:
    struct table {
        slot* slots;
        unsigned bits;
    };
    static constexpr unsigned count_limit = 8;

    // The slot of an address, or the empty one where it belongs.
    static slot& place_of(const table& t, std::uintptr_t address) noexcept {
        const std::size_t mask = (std::size_t{1} << t.bits) - 1;
        std::size_t i = fibonacci_hash(address, t.bits);
        for (;; i = (i + 1) & mask) {
            // Relaxed: a reader loads the address again, and the writer wrote it itself.
            const std::uintptr_t there = t.slots[i].address.load(std::memory_order_relaxed);
            if (there == address || there == 0) return t.slots[i];
        }
    }

    // Returns false if the address is there already.
    static bool put(const table& t, std::uintptr_t address, const Value& value) noexcept {
        slot& s = place_of(t, address);
        if (s.address.load(std::memory_order_relaxed) != 0) return false;  // only the writer's
        s.value = value;
        s.address.store(address, std::memory_order_release);  // I1; pairs with find()
        return true;
    }

    // Returns a table four times as large with the same content, or null.
    const table* grow(const table* from) noexcept {
        if (from + 1 == tables_ + count_limit) return nullptr;
        table& to = tables_[from + 1 - tables_];
        to.bits = from->bits + 2;
        to.slots = more_(std::size_t{1} << to.bits);
        if (to.slots == nullptr) return nullptr;
        for (std::size_t i = 0; i != std::size_t{1} << from->bits; ++i) {
            const slot& s = from->slots[i];
            const std::uintptr_t address = s.address.load(std::memory_order_relaxed);  // as above
            if (address != 0) put(to, address, s.value);
        }
        in_use_.store(&to, std::memory_order_release);  // pairs with find()
        return &to;
    }

    table tables_[count_limit];
    const supply more_;
    atomic<const table*> in_use_{&tables_[0]};
    atomic<bool> writing_{false};
    std::size_t used_ = 0;  // guarded by writing_
};

}  // namespace weft::detail
