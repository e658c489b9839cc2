// How far down a stack has been touched, as the working set of the process shows. A page that the
// system has taken out of it meanwhile is not there, but a stack is one piece from its top down, so
// that only the lowest pages of it can be missed.
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#define PSAPI_VERSION 2  // in kernel32
#include <windows.h>
// after it
#include <psapi.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "weft/stack/detail/os_memory.hpp"
#include "weft/stack/growable_stack.hpp"
#include "weft/stack/high_water.hpp"

namespace weft {
namespace {

constexpr std::size_t batch_count = 64;
using batch = std::array<PSAPI_WORKING_SET_EX_INFORMATION, batch_count>;

// The index of the first touched page; count if none is, 0 if that cannot be read.
std::size_t first_touched(std::byte* begin, std::size_t count) noexcept {
    batch pages = {};
    for (std::size_t i = 0; i < count; ++i)
        pages[i].VirtualAddress = begin + i * detail::page_bytes();
    const auto bytes = static_cast<DWORD>(count * sizeof pages[0]);
    if (::QueryWorkingSetEx(::GetCurrentProcess(), pages.data(), bytes) == 0) return 0;
    const auto end = pages.begin() + static_cast<std::ptrdiff_t>(count);
    return static_cast<std::size_t>(
        std::find_if(pages.begin(), end,
                     [](const auto& p) { return p.VirtualAttributes.Valid != 0; }) -
        pages.begin());
}

}  // namespace

std::size_t high_water_bytes(stack s) noexcept {
    const std::size_t page = detail::page_bytes();
    const std::size_t into = reinterpret_cast<std::uintptr_t>(s.limit) % page;
    std::byte* p = s.limit + (into == 0 ? 0 : page - into);
    while (p < s.top) {
        const std::size_t left = (static_cast<std::size_t>(s.top - p) + page - 1) / page;
        const std::size_t count = std::min(left, batch_count);
        const std::size_t first = first_touched(p, count);
        p += first * page;
        if (first != count) break;
    }
    return static_cast<std::size_t>(s.top - std::min(p, s.top));
}

void reset_high_water(stack s) noexcept { detail::discard_pages(s.limit, s.top); }

void reset_high_water(stack s, const void* sp) noexcept { growable_stack::trim(s, sp); }

}  // namespace weft

#endif
