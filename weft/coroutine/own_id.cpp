#include "weft/coroutine/detail/own_id.hpp"

namespace weft::detail {
namespace {

// Orders: relaxed, an id only has to be unique.
constinit std::atomic<std::uint64_t> given{0};

}  // namespace

std::uint64_t own_id::give() const noexcept {
    const std::uint64_t next = given.fetch_add(1, std::memory_order_relaxed) + 1;
    std::uint64_t seen = 0;
    return id_.compare_exchange_strong(seen, next, std::memory_order_relaxed) ? next : seen;
}

}  // namespace weft::detail
