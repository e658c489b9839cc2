#include "weft/stack/high_water.hpp"

#include <algorithm>
#include <cstdint>

#include "weft/base/errno.hpp"
#include "weft/stack/detail/os_memory.hpp"
#include "weft/stack/detail/touched_pages.hpp"
#include "weft/stack/growable_stack.hpp"

namespace weft {

std::size_t high_water_bytes(stack s) noexcept {
    const kept_errno before;
    const detail::touched_pages touched;
    const std::size_t page = detail::page_bytes();
    const std::size_t into = reinterpret_cast<std::uintptr_t>(s.limit) % page;
    std::byte* p = s.limit + (into == 0 ? 0 : page - into);
    while (p < s.top) {
        const std::size_t left = (static_cast<std::size_t>(s.top - p) + page - 1) / page;
        const std::size_t count = std::min(left, detail::touched_pages::most);
        const std::size_t first = touched.first(p, count);
        p += first * page;
        if (first != count) break;
    }
    return static_cast<std::size_t>(s.top - std::min(p, s.top));
}

void reset_high_water(stack s) noexcept { detail::discard_pages(s.limit, s.top); }

void reset_high_water(stack s, const void* sp) noexcept { growable_stack::trim(s, sp); }

}  // namespace weft
