#include <cstdint>

#include "weft/stack/detail/os_memory.hpp"

namespace weft::detail {

std::size_t discard_pages(std::byte* begin, std::byte* end) noexcept {
    const std::size_t page = page_bytes();
    begin += (page - reinterpret_cast<std::uintptr_t>(begin) % page) % page;
    end -= reinterpret_cast<std::uintptr_t>(end) % page;
    if (begin >= end) return 0;
    const memory_range r{begin, static_cast<std::size_t>(end - begin)};
    return os.advise(r, advice::drop) ? r.bytes : 0;
}

}  // namespace weft::detail
