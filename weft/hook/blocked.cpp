#include "weft/hook/detail/blocked.hpp"

#include <dlfcn.h>

#include <chrono>

#include "weft/base/detail/line.hpp"
#include "weft/hook/detail/fiber_errno.hpp"
#include "weft/hook/hook.hpp"

namespace weft::hook {
namespace {

constexpr duration long_block = std::chrono::milliseconds(10);
constexpr std::uint64_t most_places_told = 8;
constinit atomic<std::uint64_t> places_seen{0};  // Orders: relaxed, only counted.
// Orders: the acquire of tell_blocked() pairs with the release of on_blocked(), which acquires too,
// for the handler that it returns.
constinit atomic<blocked_handler> blocked_teller{nullptr};

// The call sites that were reported. A call site that finds no room counts as reported.
constexpr std::size_t place_count = 512;
constinit atomic<const void*> told_places[place_count];

bool is_first_at(const void* caller) noexcept {
    const auto start = reinterpret_cast<std::uintptr_t>(caller) * 0x9e3779b97f4a7c15 >> 32;
    for (std::size_t i = 0; i < place_count; ++i) {
        atomic<const void*>& place = told_places[(start + i) % place_count];
        // Relaxed, both: an entry is an address and publishes nothing else.
        const void* known = place.load(std::memory_order_relaxed);
        if (known == nullptr &&
            place.compare_exchange_strong(known, caller, std::memory_order_relaxed))  // as above
            return true;
        if (known == caller) return false;
    }
    return false;
}

void write_blocked(const blocked_call& c) noexcept {
    detail::line l;
    l.text("weft: blocked: ").agent(c.fiber->info());
    if (c.is_over)
        l.text(" has blocked its thread for ")
            .number(static_cast<std::uint64_t>(
                std::chrono::duration_cast<std::chrono::milliseconds>(c.lasted).count()))
            .text(" ms in ");
    else
        l.text(" blocks its thread in ");
    l.text(c.call).text(", called by ");
    const auto at = reinterpret_cast<std::uintptr_t>(c.caller);
    ::Dl_info about{};
    const bool is_known = ::dladdr(c.caller, &about) != 0 && about.dli_fname != nullptr;
    if (!is_known)
        l.hex(at);
    else if (about.dli_sname != nullptr)
        l.text(about.dli_sname)
            .text("+")
            .hex(at - reinterpret_cast<std::uintptr_t>(about.dli_saddr))
            .text(" in ")
            .text(about.dli_fname);
    else
        l.text(about.dli_fname)
            .text("+")
            .hex(at - reinterpret_cast<std::uintptr_t>(about.dli_fbase));
    l.newline().write(2);
}

void tell_blocked(const blocked_call& c, std::uint64_t number) noexcept {
    const kept_errno own;
    if (const blocked_handler h =
            blocked_teller.load(std::memory_order_acquire))  // with on_blocked
        return h(c);
    if (number < most_places_told) write_blocked(c);
}

}  // namespace

void blocks_thread::begin() noexcept {
    since_ = steady_now();
    if (expected_ == brief || !is_first_at(caller_)) return;
    is_reported_ = true;
    number_ = places_seen.fetch_add(1, std::memory_order_relaxed);
    tell_blocked({fiber_, call_, caller_, false, duration::zero()}, number_);
}

void blocks_thread::end() noexcept {
    const duration lasted = steady_now() - since_;
    if (expected_ == brief && lasted >= long_block && is_first_at(caller_)) {
        is_reported_ = true;
        number_ = places_seen.fetch_add(1, std::memory_order_relaxed);
    }
    if (is_reported_) tell_blocked({fiber_, call_, caller_, true, lasted}, number_);
}

blocked_handler on_blocked(blocked_handler h) noexcept {
    return blocked_teller.exchange(h, std::memory_order_acq_rel);
}

std::uint64_t blocked_count() noexcept { return places_seen.load(std::memory_order_relaxed); }

}  // namespace weft::hook
