// Pages of Windows. What was reserved at once is released at once: of a part that is released
// before the rest the memory goes, and its addresses go with the last part.
//
//     reserved   | part | part | part |        what VirtualAlloc has returned, in steps of 64 KiB
//                   |      '- decommitted: no memory, and a fault
//                   '- committed
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include <windows.h>

#include <cstdint>
#include <mutex>

#include "weft/base/detail/pages.hpp"
#include "weft/base/detail/system_mutex.hpp"

namespace weft::detail {
namespace {

// Of two threads that release the last two parts of what was reserved, the later finds no other.
constinit system_mutex releasing;

void* reserve(void* at, std::size_t bytes) noexcept {
    return ::VirtualAlloc(at, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void* begin_of_reserved(const void* p) noexcept {
    MEMORY_BASIC_INFORMATION at;
    return ::VirtualQuery(p, &at, sizeof at) != 0 ? at.AllocationBase : nullptr;
}

// Whether the pages in between are all that is left of what was reserved at `begin`.
bool no_other_is_left(std::byte* begin, const std::byte* from, const std::byte* to) noexcept {
    MEMORY_BASIC_INFORMATION piece;
    for (std::byte* p = begin;; p += piece.RegionSize) {
        if (::VirtualQuery(p, &piece, sizeof piece) == 0 || piece.AllocationBase != begin)
            return true;
        const auto* const first = static_cast<const std::byte*>(piece.BaseAddress);
        if (piece.State == MEM_COMMIT && (first < from || first + piece.RegionSize > to))
            return false;
    }
}

}  // namespace

void* try_acquire_pages(std::size_t bytes) noexcept { return reserve(nullptr, bytes); }

// Another thread may take the aligned addresses between two calls: then it is tried again.
void* try_acquire_aligned_pages(std::size_t bytes) noexcept {
    for (;;) {
        void* p = reserve(nullptr, bytes);
        if ((reinterpret_cast<std::uintptr_t>(p) & (bytes - 1)) == 0) return p;  // null too
        ::VirtualFree(p, 0, MEM_RELEASE);
        p = ::VirtualAlloc(nullptr, 2 * bytes, MEM_RESERVE, PAGE_NOACCESS);
        if (p == nullptr) return nullptr;
        const std::uintptr_t aligned =
            (reinterpret_cast<std::uintptr_t>(p) + bytes - 1) & ~(bytes - 1);
        ::VirtualFree(p, 0, MEM_RELEASE);
        p = reserve(reinterpret_cast<void*>(aligned), bytes);
        if (p != nullptr) return p;
    }
}

bool release_pages(void* p, std::size_t bytes) noexcept {
    const std::lock_guard held(releasing);
    auto* const first = static_cast<std::byte*>(p);
    auto* const begin = static_cast<std::byte*>(begin_of_reserved(p));
    if (begin == nullptr) return false;
    if (no_other_is_left(begin, first, first + bytes))
        return ::VirtualFree(begin, 0, MEM_RELEASE) != 0;
    return ::VirtualFree(p, bytes, MEM_DECOMMIT) != 0;
}

}  // namespace weft::detail

#endif
