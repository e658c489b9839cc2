// guard: the pages below a stack that turn an overflow into a fault instead of a corruption.
//
// Three kinds; the best that works is used:
//   marker      MADV_GUARD_INSTALL: any number of them, many in one call (Linux 6.13)
//   protection  mprotect: splits the mapping, two of the vm.max_map_count mappings a process may
//               have; so weft uses at most half of those
//   canary      nothing faults: a pattern just below the limit, checked on release
//
//      | guard bytes ........ [canary 64] | limit ... usable ...
//
// The caller that installs a guard stores the kind, to check a canary and to release the budget.
//
// Model: none, a counter that bounds a budget: one too few is harmless, and it orders nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/stack/detail/os_memory.hpp"

namespace weft::detail {

enum class guard_kind : std::uint8_t { none, marker, protection, canary };

// Whether the kernel has markers, and they really fault. (Emulators claim to have everything.)
bool markers_work() noexcept;
bool a_marker_faults(const os_memory&) noexcept;  // tried now, by these calls

// Marks several ranges at once; returns how many, from the first on, are marked.
std::size_t install_markers(const memory_range* ranges, std::size_t count) noexcept;

// Installs a fault guard for one range; none if that is not possible.
guard_kind install_fault_guard(memory_range) noexcept;

// Call when the guarded range has been unmapped.
void release_guard(guard_kind) noexcept;

// The canary is in the bytes just below `limit`, which must be writable.
inline constexpr std::size_t canary_bytes = 64;
void write_canary(std::byte* limit) noexcept;
bool canary_intact(const std::byte* limit) noexcept;

// How many mappings a process may have: the number in that file, or the kernel's default if the
// file cannot be read.
std::size_t mapping_limit(const char* file = "/proc/sys/vm/max_map_count") noexcept;

// The limit and the current number of guards by mprotect.
std::size_t protection_budget() noexcept;
std::size_t protection_count() noexcept;

}  // namespace weft::detail
