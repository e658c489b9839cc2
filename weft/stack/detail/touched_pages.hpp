// touched_pages: which pages of a stack have been touched, as the system knows it. The one part of
// high_water_bytes that differs from system to system.
#pragma once

#include <cstddef>

namespace weft::detail {

class touched_pages {
public:
    static constexpr std::size_t most = 64;  // that one call is asked about

    touched_pages() noexcept;
    ~touched_pages();
    touched_pages(const touched_pages&) = delete;
    touched_pages& operator=(const touched_pages&) = delete;

    // The index of the first of `count` pages that has been touched; count if none has, 0 if that
    // cannot be read.
    std::size_t first(std::byte* begin, std::size_t count) const noexcept;

private:
    int source_;  // a descriptor where the system has a file that says it; -1 where not
};

}  // namespace weft::detail
