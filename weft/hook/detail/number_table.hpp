// number_table: something small that is known about a descriptor, by its fd: an entry for each fd
// of up to 2^30, all zero at first.
//
//      fd ---> [chunk of 32768] ---> entry
//
// Design: a chunk is made when one of its fds first needs an entry, and stays, so that a lookup
// takes no lock. A chunk comes from the system and not from malloc, which may be the caller. The
// owner of the table defines an entry and the meaning of its words: zero bytes must be an entry of
// which nothing is known.
//
//   constinit number_table<atomic<std::uint8_t>> sorts;
//   if (atomic<std::uint8_t>* const p = sorts.make(fd)) p->store(pipe, relaxed);
//
// Model: none, a pointer to a chunk is put in once and stays.
#pragma once

#include <sys/mman.h>

#include <algorithm>

#include "weft/base/detail/atomic.hpp"

namespace weft::hook {

template <class Place>
class number_table {
public:
    // Null: nothing was ever known of the fd, or of an fd near it.
    Place* find(int number) const noexcept {
        const unsigned at = static_cast<unsigned>(number) / chunk_places;
        if (at >= chunk_count) return nullptr;
        Place* const chunk = chunks_[at].load(std::memory_order_acquire);  // pairs with make()
        return chunk != nullptr ? &chunk[static_cast<unsigned>(number) % chunk_places] : nullptr;
    }

    // Null: no memory can be had, or no such fd can exist.
    Place* make(int number) noexcept {
        if (Place* const p = find(number)) return p;
        const unsigned at = static_cast<unsigned>(number) / chunk_places;
        if (at >= chunk_count) return nullptr;
        void* const fresh = ::mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) return nullptr;
        Place* none = nullptr;
        // Release: pairs with find() and for_each(), though a fresh chunk is all zero anyway.
        if (!chunks_[at].compare_exchange_strong(none, static_cast<Place*>(fresh),
                                                 std::memory_order_acq_rel))
            ::munmap(fresh, chunk_bytes);
        return find(number);
    }

    // Calls f(fd, entry) for the entries that exist, of the fds from first to last.
    template <class F>
    void for_each(unsigned first, unsigned last, F f) noexcept {
        if (first > last) return;
        for (unsigned c = first / chunk_places; c < chunk_count && c <= last / chunk_places; ++c) {
            Place* const chunk = chunks_[c].load(std::memory_order_acquire);  // pairs with make()
            if (chunk == nullptr) continue;
            const unsigned base = c * chunk_places;
            const unsigned end = std::min(last - base, chunk_places - 1);
            for (unsigned i = std::max(first, base) - base; i <= end; ++i)
                f(static_cast<int>(base + i), chunk[i]);
        }
    }

private:
    static constexpr unsigned chunk_places = 32768;
    static constexpr unsigned chunk_count = 32768;
    static constexpr std::size_t chunk_bytes = chunk_places * sizeof(Place);

    atomic<Place*> chunks_[chunk_count] = {};
};

}  // namespace weft::hook
