// Which pages have been touched, as the working set of the process shows. A page that the system
// has taken out of it meanwhile is not there, but a stack is one piece from its top down, so that
// only the lowest pages of it can be missed.
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#define PSAPI_VERSION 2  // in kernel32
#include <windows.h>
// after it
#include <psapi.h>

#include <algorithm>
#include <array>

#include "weft/stack/detail/os_memory.hpp"
#include "weft/stack/detail/touched_pages.hpp"

namespace weft::detail {

touched_pages::touched_pages() noexcept : source_(-1) {}

touched_pages::~touched_pages() = default;

std::size_t touched_pages::first(std::byte* begin, std::size_t count) const noexcept {
    std::array<PSAPI_WORKING_SET_EX_INFORMATION, most> pages = {};
    for (std::size_t i = 0; i < count; ++i) pages[i].VirtualAddress = begin + i * page_bytes();
    const auto bytes = static_cast<DWORD>(count * sizeof pages[0]);
    if (::QueryWorkingSetEx(::GetCurrentProcess(), pages.data(), bytes) == 0) return 0;
    const auto end = pages.begin() + static_cast<std::ptrdiff_t>(count);
    return static_cast<std::size_t>(
        std::find_if(pages.begin(), end,
                     [](const auto& p) { return p.VirtualAttributes.Valid != 0; }) -
        pages.begin());
}

}  // namespace weft::detail

#endif
