#include "weft/stack/high_water.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "weft/base/errno.hpp"
#include "weft/stack/detail/os_memory.hpp"
#include "weft/stack/growable_stack.hpp"

namespace weft {
namespace {

constexpr std::size_t batch_count = 64;

// Which of up to batch_count pages have been touched: read from /proc/self/pagemap, which also
// knows pages that were swapped out, else from mincore.
class page_oracle {
public:
    page_oracle() noexcept : pagemap_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
    ~page_oracle() {
        if (pagemap_ >= 0) ::close(pagemap_);
    }
    page_oracle(const page_oracle&) = delete;
    page_oracle& operator=(const page_oracle&) = delete;

    // The index of the first touched page, count if no page is touched, 0 if that cannot be read.
    std::size_t first_touched(std::byte* begin, std::size_t count) const noexcept {
        std::uint64_t entries[batch_count];
        const auto page = reinterpret_cast<std::uintptr_t>(begin) / detail::page_bytes();
        const std::size_t bytes = count * sizeof entries[0];
        if (pagemap_ >= 0 &&
            ::pread(pagemap_, entries, bytes, static_cast<off_t>(page * sizeof entries[0])) ==
                static_cast<ssize_t>(bytes)) {
            constexpr std::uint64_t present_or_swapped = std::uint64_t{3} << 62;
            return static_cast<std::size_t>(
                std::find_if(entries, entries + count,
                             [](std::uint64_t e) { return (e & present_or_swapped) != 0; }) -
                entries);
        }
        unsigned char resident[batch_count];
        if (::mincore(begin, count * detail::page_bytes(), resident) != 0) return 0;
        return static_cast<std::size_t>(
            std::find_if(resident, resident + count, [](unsigned char r) { return (r & 1) != 0; }) -
            resident);
    }

private:
    int pagemap_;
};

}  // namespace

std::size_t high_water_bytes(stack s) noexcept {
    const kept_errno before;
    const page_oracle oracle;
    const std::size_t page = detail::page_bytes();
    const std::size_t into = reinterpret_cast<std::uintptr_t>(s.limit) % page;
    std::byte* p = s.limit + (into == 0 ? 0 : page - into);
    while (p < s.top) {
        const std::size_t left = (static_cast<std::size_t>(s.top - p) + page - 1) / page;
        const std::size_t count = std::min(left, batch_count);
        const std::size_t first = oracle.first_touched(p, count);
        p += first * page;
        if (first != count) break;
    }
    return static_cast<std::size_t>(s.top - std::min(p, s.top));
}

void reset_high_water(stack s) noexcept { detail::discard_pages(s.limit, s.top); }

void reset_high_water(stack s, const void* sp) noexcept { growable_stack::trim(s, sp); }

}  // namespace weft
