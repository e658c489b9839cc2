#include "weft/base/pages.hpp"

#include <sys/mman.h>

#include <cerrno>

namespace weft::detail {

void* try_acquire_pages(std::size_t bytes) noexcept {
    const int kept = errno;
    void* const p =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = kept;
    return p != MAP_FAILED ? p : nullptr;
}

void release_pages(void* p, std::size_t bytes) noexcept { ::munmap(p, bytes); }

}  // namespace weft::detail
