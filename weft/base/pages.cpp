#include "weft/base/detail/pages.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

namespace weft::detail {

void* try_acquire_pages(std::size_t bytes) noexcept {
    const int kept = errno;
    void* const p =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = kept;
    return p != MAP_FAILED ? p : nullptr;
}

// The system puts one mapping right below another, so that mostly the first try will do.
void* try_acquire_aligned_pages(std::size_t bytes) noexcept {
    auto* p = static_cast<std::byte*>(try_acquire_pages(bytes));
    std::size_t over = reinterpret_cast<std::uintptr_t>(p) & (bytes - 1);
    if (over == 0) return p;  // null too
    release_pages(p, bytes);
    p = static_cast<std::byte*>(try_acquire_pages(2 * bytes));
    if (p == nullptr) return nullptr;
    over = reinterpret_cast<std::uintptr_t>(p) & (bytes - 1);
    if (over != 0) release_pages(p + (2 * bytes - over), over);
    release_pages(p, bytes - over);
    return p + (bytes - over);
}

bool release_pages(void* p, std::size_t bytes) noexcept { return ::munmap(p, bytes) == 0; }

}  // namespace weft::detail
