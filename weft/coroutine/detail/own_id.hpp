// own_id: a number that is unique among the coroutines of the process, assigned at the first get().
//
// Design: most ids are never read, so making a coroutine does not pay for one. The first get()
// takes the process's next number; two concurrent first calls agree by one compare-exchange, and
// the number that loses stays unused. Never 0. Any thread, and signal handlers.
//
//   weft::detail::own_id id;
//   std::uint64_t n = id.get();
//
// Model: none, one word that is written once; nothing is published by it.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::detail {

class own_id {
public:
    std::uint64_t get() const noexcept {
        const std::uint64_t id = id_.load(std::memory_order_relaxed);
        return id != 0 ? id : give();
    }
    // Continues with the id of another coroutine, which is gone.
    void take_over(const own_id& from) noexcept {
        id_.store(from.id_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }

private:
    std::uint64_t give() const noexcept;

    // Orders: relaxed, a number that is written once and publishes nothing.
    mutable std::atomic<std::uint64_t> id_{0};
};

}  // namespace weft::detail
