#include "weft/stack/detail/os_memory.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace weft::detail {
namespace {

static_assert(sizeof(memory_range) == sizeof(iovec));

std::byte* map(std::size_t bytes) noexcept {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
}

bool unmap(memory_range r) noexcept { return ::munmap(r.begin, r.bytes) == 0; }

bool protect(memory_range r) noexcept { return ::mprotect(r.begin, r.bytes, PROT_NONE) == 0; }

bool advise(memory_range r, advice what) noexcept {
    return ::madvise(r.begin, r.bytes, static_cast<int>(what)) == 0;
}

// process_madvise on the calling process, by the constant that means the caller (PIDFD_SELF, Linux
// 6.15) and not by a descriptor: after a fork a descriptor would mean the parent.
std::size_t advise_many(const memory_range* r, std::size_t count, advice what) noexcept {
    // Orders: relaxed, a hint; a caller that does not see it yet makes one more call.
    static constinit std::atomic<bool> known_missing{false};
    if (known_missing.load(std::memory_order_relaxed)) return 0;
    constexpr int self = -10000;
    constexpr long number = 440;  // SYS_process_madvise, the same everywhere
    const long done = ::syscall(number, self, r, count, static_cast<int>(what), 0u);
    if (done < 0) {
        known_missing.store(true, std::memory_order_relaxed);
        return 0;
    }
    std::size_t whole = 0;
    for (auto left = static_cast<std::size_t>(done); whole < count && r[whole].bytes <= left;
         ++whole)
        left -= r[whole].bytes;
    return whole;
}

void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes); }
void release(void* p) noexcept { std::free(p); }

}  // namespace

constinit const os_memory system_memory = {map,         unmap,    protect, advise,
                                           advise_many, allocate, release};
constinit os_memory os = {map, unmap, protect, advise, advise_many, allocate, release};

#if !WEFT_X86_64
std::size_t page_bytes() noexcept {
    static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}
#endif

}  // namespace weft::detail
