#include "weft/stack/os_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace weft::detail {
namespace {

void* map(std::size_t bytes) noexcept {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
}

int unmap(void* begin, std::size_t bytes) noexcept { return ::munmap(begin, bytes); }

int protect(void* begin, std::size_t bytes) noexcept {
    return ::mprotect(begin, bytes, PROT_NONE);
}

int advise(void* begin, std::size_t bytes, advice what) noexcept {
    return ::madvise(begin, bytes, static_cast<int>(what));
}

void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes); }
void release(void* p) noexcept { std::free(p); }

}  // namespace

constinit const os_memory system_memory = {map, unmap, protect, advise, allocate, release};
constinit os_memory os = {map, unmap, protect, advise, allocate, release};

#if !WEFT_X86_64
std::size_t page_bytes() noexcept {
    static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}
#endif

}  // namespace weft::detail
