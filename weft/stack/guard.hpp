// guard: the pages below a stack that turn an overflow into a fault instead of a corruption.
//
// Three ways, the best that works is taken:
//   marker      MADV_GUARD_INSTALL: any number of them, many in one call (Linux 6.13)
//   protection  mprotect: splits the mapping, two of the vm.max_map_count mappings a process may
//               have; so weft uses at most half of those
//   canary      nothing faults: a pattern just below the limit, checked on release
//
//      | guard bytes ........ [canary 64] | limit ... usable ...
//
// The caller that installs a guard keeps the kind, to check a canary and to give the budget back.
//
// Model: none, a counter that bounds a budget: one too few is harmless, and it orders nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/stack/os_memory.hpp"

namespace weft::detail {

enum class guard_kind : std::uint8_t { none, marker, protection, canary };

// Does the kernel have markers, and do they really fault? (Emulators say yes to anything.)
bool markers_work() noexcept;
bool a_marker_faults(const os_memory&) noexcept;  // tried now, by these calls

// Marks several ranges at once; how many, from the first on, are marked now.
std::size_t install_markers(const memory_range* ranges, std::size_t count) noexcept;

// A fault guard for one range, or none where it cannot be had.
guard_kind install_fault_guard(memory_range) noexcept;

// Call when the guarded range has been unmapped.
void forget_guard(guard_kind) noexcept;

// The canary lies in the bytes just below `limit`, which must be writable.
inline constexpr std::size_t canary_bytes = 64;
void write_canary(std::byte* limit) noexcept;
bool canary_intact(const std::byte* limit) noexcept;

// How many mappings a process may have: what is in that file, or the kernel's default where it
// cannot be read.
std::size_t mapping_limit(const char* file = "/proc/sys/vm/max_map_count") noexcept;

// How many guards by mprotect there may be, and are.
std::size_t protection_budget() noexcept;
std::size_t protection_count() noexcept;

}  // namespace weft::detail
