#include "weft/stack/detail/guard.hpp"

#include <atomic>
#include <cstring>

namespace weft::detail {
namespace {

// A plain counter: nothing is published through it, so relaxed.
// Orders: relaxed, a count, by which nothing is published.
constinit std::atomic<std::size_t> protections{0};

std::uint64_t canary_word(const std::byte* limit, std::size_t i) noexcept {
    return (reinterpret_cast<std::uintptr_t>(limit) + i) * 0x9e3779b97f4a7c15u;
}

}  // namespace

bool markers_work() noexcept {
    static const bool answer = a_marker_faults(system_memory);
    return answer;
}

std::size_t install_markers(const memory_range* ranges, std::size_t count) noexcept {
    return markers_work() ? os.advise_many(ranges, count, advice::guard_install) : 0;
}

guard_kind install_fault_guard(memory_range r) noexcept {
    if (markers_work() && os.advise(r, advice::guard_install)) return guard_kind::marker;
    if (protections.fetch_add(1, std::memory_order_relaxed) < protection_budget() && os.protect(r))
        return guard_kind::protection;
    protections.fetch_sub(1, std::memory_order_relaxed);
    return guard_kind::none;
}

void release_guard(guard_kind kind) noexcept {
    if (kind == guard_kind::protection) protections.fetch_sub(1, std::memory_order_relaxed);
}

void write_canary(std::byte* limit) noexcept {
    for (std::size_t i = 1; i <= canary_bytes / sizeof(std::uint64_t); ++i) {
        const std::uint64_t word = canary_word(limit, i);
        std::memcpy(limit - i * sizeof word, &word, sizeof word);
    }
}

bool canary_intact(const std::byte* limit) noexcept {
    for (std::size_t i = 1; i <= canary_bytes / sizeof(std::uint64_t); ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, limit - i * sizeof word, sizeof word);
        if (word != canary_word(limit, i)) return false;
    }
    return true;
}

std::size_t protection_budget() noexcept {
    // Two mappings for each guard; half of all mappings stay for the rest of the process.
    static const std::size_t answer = mapping_limit() / 4;
    return answer;
}

std::size_t protection_count() noexcept { return protections.load(std::memory_order_relaxed); }

}  // namespace weft::detail
