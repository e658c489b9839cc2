// block_cache: small blocks of memory for whatever is made and destroyed all the time, such as
// coroutine frames and control blocks.
//
// Its one idea: each thread keeps, per size class, a LIFO list of free blocks, so that the block
// handed out is the one that is still in the cache, and neither acquire nor release takes a lock or
// a call. Blocks are cut from chunks one behind the other, so that those acquired together lie
// together, and begin on a cache line.
//
//   bytes  0       1..64   65..128  ...  961..1024   > 1024
//   list   new(0)  [0]     [1]           [15]        operator new
//                   |
//                   v  head                    at most one batch long
//                  [block] -> [block] -> null              this thread's, inlined
//                      |  a whole batch       ^
//                      v  at a time           |
//                  spare: [batch] [batch]                  this thread's, at most 256 KiB
//                      |                      ^
//                      v                      |
//                  depot: [batch] [batch] [batch]          the process's, one mutex
//                                   ^
//                  chunks of 4 to 64 KiB, kept until the process ends
//
// A block may be released on another thread than it was acquired on: it joins that thread's list,
// whose overflow reaches the others by way of the depot. At thread exit all of its blocks go there.
// It may be used at any time: in destructors of statics and thread_locals too (these meet the depot
// directly once the thread's lists are gone), but not in a signal handler.
//
// Limits: chunks are reused but never given back, so that memory stays at the highest use. When
// block_cache.cpp is compiled for AddressSanitizer every block is its own allocation, so that use
// after release and leaks are found.
//
//   void* p = weft::block_cache::acquire(bytes);
//   weft::block_cache::release(p, bytes);
#pragma once

#include <atomic>
#include <cstddef>
#include <new>

#include "weft/base/platform.hpp"
#include "weft/base/tls.hpp"

namespace weft {

namespace detail {

// A free block keeps the link in its first word; the depot uses the next two of a batch's first.
struct free_block {
    free_block* next;
    free_block* next_batch;
    std::size_t batch_count;
};

// Invariants, of one thread's list:
// I1  the length of the list plus `room` is the count of a batch; both are 0 before the thread's
//     first slow path, after its exit, and always under ASan: the fast path needs no other test
struct block_list {
    free_block* head = nullptr;        // this thread only
    std::atomic<std::size_t> room{0};  // written by this thread; relaxed: others only count
};

struct block_lists {
    static constexpr std::size_t step_bytes = cache_line_bytes;
    static constexpr std::size_t class_count = 16;
    block_list lists[class_count];

    // The class of a size; class_count or more for what is no block. 0 wraps round to "no block".
    static constexpr std::size_t index(std::size_t bytes) noexcept {
        return (bytes - 1) / step_bytes;
    }
};

void* acquire_slow(std::size_t bytes) noexcept;
void release_slow(void* p, std::size_t bytes) noexcept;
[[noreturn]] void throw_out_of_memory();

}  // namespace detail
}  // namespace weft

WEFT_DECLARE_THREAD_LOCAL(weft::detail::block_lists, weft_tls_block_lists, this_block_lists);

namespace weft {

// All in blocks of whole classes; what operator new serves is not counted. Exact when no other
// thread is in the middle of an acquire or release.
struct block_cache_statistics {
    std::size_t chunk_bytes;   // taken from the system
    std::size_t used_bytes;    // in the hands of users
    std::size_t cached_bytes;  // in lists and spare batches of threads
    std::size_t depot_bytes;   // in the depot, or not cut yet
};

class block_cache {
public:
    static constexpr std::size_t alignment = cache_line_bytes;
    static constexpr std::size_t maximum_block_bytes =
        detail::block_lists::step_bytes * detail::block_lists::class_count;

    // Memory aligned to `alignment`; throws std::bad_alloc (aborts where exceptions are off).
    [[nodiscard]] static void* acquire(std::size_t bytes) {
        void* p = try_acquire(bytes);
        if (__builtin_expect(p == nullptr, 0)) detail::throw_out_of_memory();
        return p;
    }

    // The same; null when there is none.
    [[nodiscard]] static void* try_acquire(std::size_t bytes) noexcept {
        const std::size_t i = detail::block_lists::index(bytes);
        if (i < detail::block_lists::class_count) {
            detail::block_list& l = detail::this_block_lists().lists[i];
            if (detail::free_block* b = l.head; __builtin_expect(b != nullptr, 1)) {
                l.head = b->next;
                l.room.store(l.room.load(std::memory_order_relaxed) + 1,  // I1
                             std::memory_order_relaxed);
                return b;
            }
        }
        return detail::acquire_slow(bytes);
    }

    // `bytes` is what the block was acquired with.
    static void release(void* p, std::size_t bytes) noexcept {
        const std::size_t i = detail::block_lists::index(bytes);
        if (i < detail::block_lists::class_count) {
            detail::block_list& l = detail::this_block_lists().lists[i];
            const std::size_t room = l.room.load(std::memory_order_relaxed);
            if (__builtin_expect(room != 0, 1)) {
                auto* b = static_cast<detail::free_block*>(p);
                b->next = l.head;
                l.head = b;
                l.room.store(room - 1, std::memory_order_relaxed);  // I1
                return;
            }
        }
        detail::release_slow(p, bytes);
    }

    // The same for what may be aligned to more than `alignment`, which goes to operator new.
    [[nodiscard]] static void* acquire(std::size_t bytes, std::size_t align) {
        return align <= alignment ? acquire(bytes) : ::operator new(bytes, std::align_val_t{align});
    }
    static void release(void* p, std::size_t bytes, std::size_t align) noexcept {
        if (align <= alignment)
            release(p, bytes);
        else
            ::operator delete(p, std::align_val_t{align});
    }

    static block_cache_statistics statistics() noexcept;
};

}  // namespace weft
