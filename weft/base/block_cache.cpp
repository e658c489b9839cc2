#include "weft/base/block_cache.hpp"

#include <cstdlib>
#include <mutex>
#include <new>

#include "weft/base/assert.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::block_lists, weft_tls_block_lists);

namespace weft {
namespace detail {

constinit free_block shut_list{nullptr, 0, nullptr};

namespace {

constexpr std::size_t class_count = block_lists::class_count;
constexpr std::size_t least_chunk_bytes = 4 * 1024;
constexpr std::size_t largest_chunk_bytes = 64 * 1024;

constexpr std::size_t block_bytes(std::size_t i) { return (i + 1) * block_lists::step_bytes; }

// A batch is what is handed over in one go: about a page, but never so few blocks that the lock is
// felt.
constexpr std::size_t batch_count(std::size_t i) {
    const std::size_t n = least_chunk_bytes / block_bytes(i);
    return n < 16 ? 16 : n;
}
constexpr std::size_t spare_limit(std::size_t i) { return 256 * 1024 / block_bytes(i); }

static_assert(batch_count(class_count - 1) * block_bytes(class_count - 1) <= largest_chunk_bytes);
static_assert(sizeof(free_block) <= block_lists::step_bytes);

// Where lists and batches of a class end. Never written to.
struct block_ends {
    free_block of_class[class_count];
    constexpr block_ends() : of_class() {
        for (std::size_t i = 0; i < class_count; ++i)
            of_class[i] = {nullptr, batch_count(i), nullptr};
    }
};
constinit block_ends ends;

std::size_t length(std::size_t i, const free_block* first) { return batch_count(i) - first->left; }
free_block* alone(std::size_t i, free_block* b) {
    b->next = &ends.of_class[i];
    b->left = batch_count(i) - 1;
    return b;
}

// Batches, each with at least one block.
struct batch_stack {
    free_block* top = nullptr;
    std::size_t block_count = 0;  // in all of them

    void push(std::size_t i, free_block* batch) noexcept {
        batch->next_batch = top;
        top = batch;
        block_count += length(i, batch);
    }
    free_block* pop(std::size_t i) noexcept {
        free_block* batch = top;
        if (batch == nullptr) return nullptr;
        top = batch->next_batch;
        block_count -= length(i, batch);
        return batch;
    }
};

// One thread's registration and what it holds besides its lists.
struct thread_record {
    // open: between the first slow path and the thread's exit.
    enum class state : unsigned char { unborn, open, closed };

    state now = state::unborn;
    batch_stack spare[class_count];
};

constinit thread_local thread_record this_record;

// What happens at thread exit. Apart from the record, which is used after it.
struct thread_exit {
    bool watched = false;
    ~thread_exit();
};

constinit thread_local thread_exit this_exit;

// What the threads share; guarded by `mutex`.
//
// Invariants:
// I2  every chunk is cut into blocks of one class; its blocks are in users' hands, in a thread's
//     list or spare, in a batch here, or not cut yet
struct depot {
    struct size_class {
        batch_stack batches;
        std::byte* uncut = nullptr;  // [uncut, end) of the newest chunk
        std::byte* end = nullptr;
        std::size_t next_chunk_bytes = 0;
    };

    std::mutex mutex;
    size_class classes[class_count];
    std::size_t chunk_bytes = 0;

    free_block* take(std::size_t i) noexcept;
    free_block* take_one(std::size_t i) noexcept;
    bool grow(std::size_t i) noexcept;
    free_block* cut(std::size_t i) noexcept;
};

// Never destroyed: blocks are released by the last destructor of the program too.
depot& the_depot() noexcept {
    alignas(depot) static std::byte storage[sizeof(depot)];
    static depot& d = *new (storage) depot;
    return d;
}

// A batch, or null when there is no memory.
free_block* depot::take(std::size_t i) noexcept {
    free_block* batch = classes[i].batches.pop(i);
    return batch != nullptr ? batch : cut(i);
}

// For a thread that keeps no list.
free_block* depot::take_one(std::size_t i) noexcept {
    free_block* batch = take(i);
    if (batch != nullptr && length(i, batch) > 1) classes[i].batches.push(i, batch->next);
    return batch;
}

// Opens a new chunk; the chunks of a class double from one batch to the largest. malloc's memory,
// not operator new's, so that a program may replace that one by this cache.
bool depot::grow(std::size_t i) noexcept {
    size_class& c = classes[i];
    const std::size_t batch_bytes = batch_count(i) * block_bytes(i);
    if (c.next_chunk_bytes == 0) c.next_chunk_bytes = batch_bytes;
    const std::size_t bytes = c.next_chunk_bytes;
    auto* chunk = static_cast<std::byte*>(std::aligned_alloc(block_cache::alignment, bytes));
    if (chunk == nullptr) return false;
    c.uncut = chunk;
    c.end = chunk + bytes;
    if (2 * bytes <= largest_chunk_bytes) c.next_chunk_bytes = 2 * bytes;
    chunk_bytes += bytes;
    return true;
}

// Cuts the next batch, linked in the order of addresses.
free_block* depot::cut(std::size_t i) noexcept {
    size_class& c = classes[i];
    if (c.uncut == c.end && !grow(i)) return nullptr;
    const std::size_t bytes = block_bytes(i);
    const std::size_t uncut_count = static_cast<std::size_t>(c.end - c.uncut) / bytes;
    std::size_t count = uncut_count < batch_count(i) ? uncut_count : batch_count(i);
    std::byte* at = c.uncut + count * bytes;
    c.uncut = at;
    free_block* first = &ends.of_class[i];
    for (; count != 0; --count) {
        at -= bytes;
        first = ::new (at) free_block{first, first->left - 1, nullptr};
    }
    return first;
}

free_block*& list_of_this_thread(std::size_t i) noexcept {
    return this_block_lists().heads[i].first;
}

// This thread begins to keep lists.
void open(thread_record& r) noexcept {
    for (std::size_t i = 0; i < class_count; ++i) list_of_this_thread(i) = &ends.of_class[i];
    r.now = thread_record::state::open;
    this_exit.watched = true;  // the first use is what has the destructor run
}

thread_exit::~thread_exit() {
    thread_record& r = this_record;
    depot& d = the_depot();
    const std::lock_guard hold(d.mutex);
    for (std::size_t i = 0; i < class_count; ++i) {
        free_block*& first = list_of_this_thread(i);
        if (first->next != nullptr) d.classes[i].batches.push(i, first);
        first = &shut_list;
        while (free_block* batch = r.spare[i].pop(i)) d.classes[i].batches.push(i, batch);
    }
    r.now = thread_record::state::closed;
}

// The list is empty: a batch becomes the list, and its first block goes out.
free_block* refill(std::size_t i) noexcept {
    thread_record& r = this_record;
    free_block* batch = r.spare[i].pop(i);
    if (batch == nullptr) {
        if (r.now == thread_record::state::unborn) open(r);
        depot& d = the_depot();
        const std::lock_guard hold(d.mutex);
        if (r.now == thread_record::state::closed) return d.take_one(i);
        batch = d.take(i);
        if (batch == nullptr) return nullptr;
    }
    list_of_this_thread(i) = batch->next;
    return batch;
}

// The list has no room: as a batch it goes to the spare ones, or, where these are many, to the
// depot. The block begins a new list.
void spill(free_block* b, std::size_t i) noexcept {
    thread_record& r = this_record;
    if (r.now == thread_record::state::unborn) open(r);
    depot& d = the_depot();
    if (r.now == thread_record::state::closed) {
        const std::lock_guard hold(d.mutex);
        d.classes[i].batches.push(i, alone(i, b));
        return;
    }
    free_block*& first = list_of_this_thread(i);
    if (first->left != 0) {  // opened just now
        b->left = first->left - 1;
        b->next = first;
    } else {
        if (r.spare[i].block_count < spare_limit(i)) {
            r.spare[i].push(i, first);
        } else {
            const std::lock_guard hold(d.mutex);
            d.classes[i].batches.push(i, first);
        }
        alone(i, b);
    }
    first = b;
}

constexpr std::align_val_t block_alignment{block_cache::alignment};

// Under ASan no list ever opens, so that each block comes here and is its own allocation.
constexpr bool separate = WEFT_ASAN != 0;

}  // namespace

void* acquire_slow(std::size_t bytes) noexcept {
    const std::size_t i = block_lists::index(bytes);
    if (separate || i >= class_count) return ::operator new(bytes, block_alignment, std::nothrow);
    return refill(i);
}

void release_slow(void* p, std::size_t bytes) noexcept {
    const std::size_t i = block_lists::index(bytes);
    if (separate || i >= class_count)
        ::operator delete(p, block_alignment);
    else
        spill(static_cast<free_block*>(p), i);
}

void throw_out_of_memory() {
#if WEFT_EXCEPTIONS
    throw std::bad_alloc();
#else
    fail("out of memory");
#endif
}

}  // namespace detail

block_cache_statistics block_cache::statistics() noexcept {
    using namespace detail;
    depot& d = the_depot();
    const std::lock_guard hold(d.mutex);
    block_cache_statistics s{d.chunk_bytes, 0, 0, 0};
    for (std::size_t i = 0; i < class_count; ++i) {
        const depot::size_class& c = d.classes[i];
        s.depot_bytes += c.batches.block_count * block_bytes(i);
        s.depot_bytes += static_cast<std::size_t>(c.end - c.uncut);
        if (this_record.now == thread_record::state::open)
            s.cached_bytes += block_bytes(i) * (this_record.spare[i].block_count +
                                                length(i, list_of_this_thread(i)));
    }
    s.used_bytes = s.chunk_bytes - s.depot_bytes - s.cached_bytes;
    return s;
}

}  // namespace weft
