// own_id: a number that no other coroutine of the process has, given when it is first asked for.
//
// Its one idea: most coroutines are never asked for it, so none pays for it when it is made. The
// first that asks takes the next of the process's numbers; two callers that ask at once agree by
// one compare and exchange, and the number that loses is no one's. Never 0. Any thread, and a
// signal handler.
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
    // Goes on under the number of another, which is gone.
    void take_over(const own_id& from) noexcept {
        id_.store(from.id_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }

private:
    std::uint64_t give() const noexcept;

    mutable std::atomic<std::uint64_t> id_{0};
};

}  // namespace weft::detail
