#include "weft/hook/detail/pin.hpp"

#include "weft/base/detail/line.hpp"
#include "weft/hook/hook.hpp"

namespace weft::hook {
namespace {

constexpr std::uint64_t most_told = 8;
constinit atomic<std::uint64_t> pins_seen{0};  // Orders: relaxed, only counted.
// Orders: the acquire of report_pin() pairs with the release of on_held_lock(), which acquires too,
// for the handler that it returns.
constinit atomic<pin_handler> pin_teller{nullptr};

}  // namespace

void report_pin(fiber_core& f, const char* what) noexcept {
    const std::uint64_t before = pins_seen.fetch_add(1, std::memory_order_relaxed);
    if (const pin_handler h =
            pin_teller.load(std::memory_order_acquire))  // pairs with on_held_lock
        return h({&f, what, f.foreign_locks});
    if (before >= most_told) return;
    detail::line{}
        .text("weft: pin: ")
        .agent(f.info())
        .text(" waits for ")
        .text(what)
        .text(" and holds a pthread mutex")
        .newline()
        .write(2);
}

pin_handler on_held_lock(pin_handler h) noexcept {
    return pin_teller.exchange(h, std::memory_order_acq_rel);
}

std::uint64_t held_lock_count() noexcept { return pins_seen.load(std::memory_order_relaxed); }

}  // namespace weft::hook
