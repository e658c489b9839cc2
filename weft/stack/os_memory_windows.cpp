// The memory of Windows. It is committed at once: pages that have not been touched take none, but
// the system keeps room for them, in memory or in its paging file. To reserve and to commit each
// page as the stack grows would need the system's own guard pages, which it moves for the threads
// that it has started itself.
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include <windows.h>

#include <algorithm>
#include <cstdlib>

#include "weft/stack/detail/os_memory.hpp"

namespace weft::detail {
namespace {

std::byte* map(std::size_t bytes) noexcept {
    return static_cast<std::byte*>(
        ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

bool unmap(memory_range r) noexcept { return ::VirtualFree(r.begin, 0, MEM_RELEASE) != 0; }

bool protect(memory_range r) noexcept {
    DWORD before;
    return ::VirtualProtect(r.begin, r.bytes, PAGE_NOACCESS, &before) != 0;
}

// The contents may go, and the pages leave the working set: that is what the second call does to
// pages that are not locked, for which it reports an error.
bool drop(std::byte* begin, std::size_t bytes) noexcept {
    if (::VirtualAlloc(begin, bytes, MEM_RESET, PAGE_READWRITE) == nullptr) return false;
    ::VirtualUnlock(begin, bytes);
    return true;
}

// Guards stay: what may not be written is passed over.
bool advise(memory_range r, advice what) noexcept {
    if (what != advice::drop) return false;
    bool done = true;
    std::byte* const end = r.begin + r.bytes;
    MEMORY_BASIC_INFORMATION piece;
    for (std::byte* p = r.begin; p < end;) {
        if (::VirtualQuery(p, &piece, sizeof piece) == 0) return false;
        std::byte* const next =
            std::min(end, static_cast<std::byte*>(piece.BaseAddress) + piece.RegionSize);
        if (piece.State == MEM_COMMIT && piece.Protect == PAGE_READWRITE)
            done = drop(p, static_cast<std::size_t>(next - p)) && done;
        p = next;
    }
    return done;
}

std::size_t advise_many(const memory_range*, std::size_t, advice) noexcept { return 0; }

void* allocate(std::size_t bytes) noexcept { return std::malloc(bytes); }
void release(void* p) noexcept { std::free(p); }

}  // namespace

constinit const os_memory system_memory = {map,         unmap,    protect, advise,
                                           advise_many, allocate, release};
constinit os_memory os = {map, unmap, protect, advise, advise_many, allocate, release};

}  // namespace weft::detail

#endif
