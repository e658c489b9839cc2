// What BOOST_FIBERS_NO_ATOMICS promises and, in 1.81 as in the versions after it, does not compile
// to: Boost.Fiber where there is one thread. Its spinlocks do nothing; its atomics are
// plain variables, which have the same functions.
//
// Included before anything of Boost.Fiber, its sources too; the standard headers come first, so
// that only what follows sees the change.
#pragma once

#include <bits/stdc++.h>

#include <mutex>

namespace std {

template <class T>
class plain_for_boost_fiber {
public:
    constexpr plain_for_boost_fiber() noexcept = default;
    constexpr plain_for_boost_fiber(T v) noexcept : value_(v) {}
    plain_for_boost_fiber(const plain_for_boost_fiber&) = delete;
    plain_for_boost_fiber& operator=(const plain_for_boost_fiber&) = delete;

    T operator=(T v) noexcept { return value_ = v; }
    operator T() const noexcept { return value_; }
    T operator++() noexcept { return ++value_; }
    T operator++(int) noexcept { return value_++; }
    T operator--() noexcept { return --value_; }
    T operator--(int) noexcept { return value_--; }
    T load(memory_order = memory_order_seq_cst) const noexcept { return value_; }
    void store(T v, memory_order = memory_order_seq_cst) noexcept { value_ = v; }
    T exchange(T v, memory_order = memory_order_seq_cst) noexcept {
        return std::exchange(value_, v);
    }
    T fetch_add(T n, memory_order = memory_order_seq_cst) noexcept {
        return std::exchange(value_, value_ + n);
    }
    T fetch_sub(T n, memory_order = memory_order_seq_cst) noexcept {
        return std::exchange(value_, value_ - n);
    }
    bool compare_exchange_strong(T& expected, T desired, memory_order = memory_order_seq_cst,
                                 memory_order = memory_order_seq_cst) noexcept {
        if (value_ != expected) {
            expected = value_;
            return false;
        }
        value_ = desired;
        return true;
    }

private:
    T value_{};
};

}  // namespace std

// Replaces Boost's header: BOOST_FIBERS_NO_ATOMICS chooses the same, but has no lock that fits.
#define BOOST_FIBERS_SPINLOCK_H
namespace boost::fibers::detail {

struct spinlock {
    void lock() noexcept {}
    bool try_lock() noexcept { return true; }
    void unlock() noexcept {}
};
using spinlock_lock = std::unique_lock<spinlock>;

}  // namespace boost::fibers::detail

#define atomic plain_for_boost_fiber
