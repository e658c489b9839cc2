#include "weft/stack/detail/touched_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "weft/stack/detail/os_memory.hpp"

namespace weft::detail {

// Of /proc/self/pagemap, which also knows pages that were swapped out; without it mincore is asked.
touched_pages::touched_pages() noexcept
    : source_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

touched_pages::~touched_pages() {
    if (source_ >= 0) ::close(source_);
}

std::size_t touched_pages::first(std::byte* begin, std::size_t count) const noexcept {
    std::uint64_t entries[most];
    const auto page = reinterpret_cast<std::uintptr_t>(begin) / page_bytes();
    const std::size_t bytes = count * sizeof entries[0];
    if (source_ >= 0 &&
        ::pread(source_, entries, bytes, static_cast<off_t>(page * sizeof entries[0])) ==
            static_cast<ssize_t>(bytes)) {
        constexpr std::uint64_t present_or_swapped = std::uint64_t{3} << 62;
        return static_cast<std::size_t>(
            std::find_if(entries, entries + count,
                         [](std::uint64_t e) { return (e & present_or_swapped) != 0; }) -
            entries);
    }
    unsigned char resident[most];
    if (::mincore(begin, count * page_bytes(), resident) != 0) return 0;
    return static_cast<std::size_t>(
        std::find_if(resident, resident + count, [](unsigned char r) { return (r & 1) != 0; }) -
        resident);
}

}  // namespace weft::detail
