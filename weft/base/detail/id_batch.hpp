// id_supply, id_batch: ids that are unique in a process, at the price of an addition.
//
// Design: a thread takes a batch of ids at a time from the supply of the process, and gives out its
// own. So making an object that has an id needs no atomic operation, and the ids of a thread grow.
// The order of ids of different threads means nothing, and the ids of a batch that a thread has not
// used are lost with the thread.
//
//   constinit id_supply jobs;                      // one in the process
//   constinit thread_local id_batch my_jobs;       // one in each thread
//   job.id = jobs.next(my_jobs);                   // 1, 2, 3, ...; never 0
//
// Model: none, a counter of which threads take batches.
#pragma once

#include <cstdint>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

// The ids that a thread still has are next + 1 .. last.
struct id_batch {
    std::uint64_t next = 0;
    std::uint64_t last = 0;
};

class id_supply {
public:
    static constexpr std::uint64_t batch_count = 1 << 14;

    constexpr id_supply() noexcept = default;
    id_supply(const id_supply&) = delete;
    id_supply& operator=(const id_supply&) = delete;

    // `mine` is the calling thread's, of this supply.
    std::uint64_t next(id_batch& mine) noexcept {
        if (mine.next == mine.last) [[unlikely]]
            refill(mine);
        return ++mine.next;
    }

private:
    WEFT_NOINLINE void refill(id_batch& mine) noexcept {
        mine.next = given_.fetch_add(batch_count, std::memory_order_relaxed);  // only uniqueness
        mine.last = mine.next + batch_count;
    }

    atomic<std::uint64_t> given_{0};
};

}  // namespace weft::detail
