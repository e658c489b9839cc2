#include "weft/coroutine/thread_block.hpp"

#include <atomic>

WEFT_DEFINE_THREAD_LOCAL(weft::detail::thread_block, weft_tls_thread);

namespace weft::detail {

exception_state unprepared{&unprepared, 0};

namespace {

// Ids are handed to threads in runs, so that making a coroutine needs no atomic operation.
constexpr std::uint64_t ids_a_run = 1 << 14;
std::atomic<std::uint64_t> ids_given{0};

}  // namespace

std::uint64_t more_ids(thread_block& t) noexcept {
    t.next_id = ids_given.fetch_add(ids_a_run, std::memory_order_relaxed);  // only uniqueness
    t.last_id = t.next_id + ids_a_run;
    return ++t.next_id;
}

}  // namespace weft::detail
