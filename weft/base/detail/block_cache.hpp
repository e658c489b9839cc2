// block_cache: small blocks of memory for objects that are made and destroyed all the time, such as
// coroutine frames and control blocks.
//
// Design: each thread keeps, per size class, a LIFO list of free blocks, so that the block that is
// given out is the one that is still in the cache, and neither acquire nor release takes a lock or
// a call. Blocks are cut from chunks one after the other, so that blocks that are acquired together
// are adjacent, and begin on a cache line.
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
//                      |                      ^
//                      v  unused for long     |
//                  chunks of 64 KiB, each with its free blocks and how many are out
//
// A block may be released on another thread than it was acquired on: it joins that thread's list,
// whose overflow reaches the other threads by way of the depot. At thread exit all of the thread's
// blocks go to the depot. The cache may be used at any time: in destructors of statics and
// thread_locals too (these use the depot directly once the thread's lists are gone), but not in a
// signal handler.
//
// What an idle program does not use is returned, a little at a time
// (base/detail/release_unused.hpp): a thread's blocks to the depot, those of the depot each to its
// chunk, and a chunk of which no block is out to the system. Only there is anything counted for
// each block.
//
// A thread has room for as many spare blocks as it came to fetch from the depot. A batch for which
// there is no room goes to the depot, and takes as much room away. So blocks that come and go stay
// with the thread, and a thread that only releases, and is never idle in a loop, is left with less
// than a batch.
//
// Limits: one block that is in use keeps its chunk. A thread that is never idle in a loop keeps
// what it has. When block_cache.cpp is compiled for AddressSanitizer every block is its own
// allocation, so that use after release and leaks are found.
//
//   void* p = weft::detail::block_cache::acquire(bytes);
//   weft::detail::block_cache::release(p, bytes);
//
// Model: none, one mutex guards what threads share, but for a hint which may come late.
#pragma once

#include <cstddef>
#include <new>

#include "weft/base/detail/tls.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

// A free block, in a list or a batch. Both end in `block_end` of their class.
//
// Invariants:
// I1  `left` is how many more blocks the list could take, so that no count needs to be kept:
//     left == next->left - 1, and at the end it is the count of a full batch
struct free_block {
    free_block* next;  // null only at the end
    std::size_t left;
    free_block* next_batch;  // in a stack of batches
};

// The list of a thread that keeps none: empty, and full. It serves threads before their first visit
// to the depot and after their last, and all under ASan.
extern free_block shut_list;

struct block_lists {
    static constexpr std::size_t step_bytes = cache_line_bytes;
    static constexpr std::size_t class_count = 16;
    struct head {
        free_block* first = &shut_list;
    };
    head heads[class_count];

    // The class of a size; class_count or more for what is no block. 0 wraps round to "no block".
    static constexpr std::size_t index(std::size_t bytes) noexcept {
        return (bytes - 1) / step_bytes;
    }
};

void* acquire_slow(std::size_t bytes) noexcept;
void release_slow(void* p, std::size_t bytes) noexcept;
[[noreturn]] void throw_out_of_memory();

}  // namespace weft::detail

WEFT_DECLARE_THREAD_LOCAL(weft::detail::block_lists, weft_tls_block_lists, this_block_lists);

namespace weft::detail {

// All in blocks of whole classes, exact; what operator new serves is not counted.
struct block_cache_stats {
    std::size_t chunk_bytes;   // taken from the system
    std::size_t depot_bytes;   // in the depot, or in their chunks
    std::size_t cached_bytes;  // in the list and spare batches of this thread
    std::size_t used_bytes;    // the rest: in use, and cached by other live threads
};

class block_cache {
public:
    static constexpr std::size_t alignment = cache_line_bytes;
    static constexpr std::size_t maximum_block_bytes =
        block_lists::step_bytes * block_lists::class_count;

    // Memory aligned to `alignment`; throws std::bad_alloc (aborts where exceptions are off).
    [[nodiscard]] static void* acquire(std::size_t bytes) {
        void* p = try_acquire(bytes);
        if (__builtin_expect(p == nullptr, 0)) throw_out_of_memory();
        return p;
    }

    // As acquire(); null when no memory can be had.
    [[nodiscard]] static void* try_acquire(std::size_t bytes) noexcept {
        const std::size_t i = block_lists::index(bytes);
        if (i < block_lists::class_count) {
            free_block*& first = this_block_lists().heads[i].first;
            free_block* b = first;
            if (free_block* next = b->next; __builtin_expect(next != nullptr, 1)) {
                first = next;
                return b;
            }
        }
        return acquire_slow(bytes);
    }

    // `bytes` is what the block was acquired with.
    static void release(void* p, std::size_t bytes) noexcept {
        const std::size_t i = block_lists::index(bytes);
        if (i < block_lists::class_count) {
            free_block*& first = this_block_lists().heads[i].first;
            free_block* next = first;
            if (const std::size_t left = next->left; __builtin_expect(left != 0, 1)) {
                auto* b = static_cast<free_block*>(p);
                b->next = next;
                b->left = left - 1;  // I1
                first = b;
                return;
            }
        }
        release_slow(p, bytes);
    }

    // As acquire() and release(), for memory that may be aligned to more than `alignment`, which
    // goes to operator new.
    [[nodiscard]] static void* acquire(std::size_t bytes, std::size_t align) {
        return align <= alignment ? acquire(bytes) : ::operator new(bytes, std::align_val_t{align});
    }
    static void release(void* p, std::size_t bytes, std::size_t align) noexcept {
        if (align <= alignment)
            release(p, bytes);
        else
            ::operator delete(p, std::align_val_t{align});
    }

    static block_cache_stats stats() noexcept;
};

}  // namespace weft::detail
