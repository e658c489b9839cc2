#include "weft/base/block_cache.hpp"

#include <cstdlib>
#include <mutex>
#include <new>

#include "weft/base/assert.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::block_lists, weft_tls_block_lists);

namespace weft {
namespace detail {
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

// A stack of batches; each has its own count in its first block.
struct batch_stack {
    free_block* top = nullptr;
    // Blocks in all of them. Written by the owner; relaxed, as others only count.
    std::atomic<std::size_t> block_count{0};

    void push(free_block* batch, std::size_t count) noexcept {
        batch->next_batch = top;
        batch->batch_count = count;
        top = batch;
        add(count);
    }
    free_block* pop() noexcept {
        free_block* batch = top;
        if (batch == nullptr) return nullptr;
        top = batch->next_batch;
        add(0 - batch->batch_count);
        return batch;
    }
    std::size_t count() const noexcept { return block_count.load(std::memory_order_relaxed); }

private:
    void add(std::size_t n) noexcept { block_count.store(count() + n, std::memory_order_relaxed); }
};

// One thread's registration and what it holds besides its lists.
struct thread_record {
    // open: between the first slow path and the thread's exit.
    enum class state : unsigned char { unborn, open, closed };

    state now = state::unborn;
    block_lists* lists = nullptr;
    batch_stack spare[class_count];
    thread_record* next = nullptr;  // depot's, under its mutex
    thread_record* previous = nullptr;
};

constinit thread_local thread_record this_record;

// What happens at thread exit. Apart from the record, which is used after it.
struct thread_exit {
    bool watched = false;
    ~thread_exit();
};

constinit thread_local thread_exit this_exit;

// What the threads share. All of it is guarded by `mutex`; lists of other threads are only counted.
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
    thread_record* threads = nullptr;
    std::size_t chunk_bytes = 0;

    void put(std::size_t i, free_block* batch, std::size_t count) noexcept;
    free_block* take(std::size_t i) noexcept;
    free_block* take_one(std::size_t i) noexcept;
    bool grow(std::size_t i) noexcept;
    free_block* cut(std::size_t i) noexcept;
    void enter(thread_record& r) noexcept;
    void leave(thread_record& r) noexcept;
};

// Never destroyed: blocks are released by the last destructor of the program too.
depot& the_depot() noexcept {
    alignas(depot) static std::byte storage[sizeof(depot)];
    static depot& d = *new (storage) depot;
    return d;
}

void depot::put(std::size_t i, free_block* batch, std::size_t count) noexcept {
    classes[i].batches.push(batch, count);
}

// 1 to batch_count blocks, or null when there is no memory.
free_block* depot::take(std::size_t i) noexcept {
    free_block* batch = classes[i].batches.pop();
    return batch != nullptr ? batch : cut(i);
}

// For a thread that keeps no list.
free_block* depot::take_one(std::size_t i) noexcept {
    free_block* batch = take(i);
    if (batch != nullptr && batch->batch_count > 1) put(i, batch->next, batch->batch_count - 1);
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
    const std::size_t left = static_cast<std::size_t>(c.end - c.uncut) / bytes;
    const std::size_t count = left < batch_count(i) ? left : batch_count(i);
    auto* first = reinterpret_cast<free_block*>(c.uncut);
    free_block* b = first;
    for (std::size_t n = 1; n < count; ++n) {
        c.uncut += bytes;
        b->next = reinterpret_cast<free_block*>(c.uncut);
        b = b->next;
    }
    c.uncut += bytes;
    b->next = nullptr;
    first->batch_count = count;
    return first;
}

void depot::enter(thread_record& r) noexcept {
    r.lists = &this_block_lists();
    for (std::size_t i = 0; i < class_count; ++i)
        r.lists->lists[i].room.store(batch_count(i), std::memory_order_relaxed);  // I1
    r.next = threads;
    if (threads != nullptr) threads->previous = &r;
    threads = &r;
    r.now = thread_record::state::open;
    this_exit.watched = true;  // the first use is what has the destructor run
}

void depot::leave(thread_record& r) noexcept {
    for (std::size_t i = 0; i < class_count; ++i) {
        block_list& l = r.lists->lists[i];
        const std::size_t count = batch_count(i) - l.room.load(std::memory_order_relaxed);
        if (count != 0) put(i, l.head, count);
        l.head = nullptr;
        l.room.store(0, std::memory_order_relaxed);  // I1
        while (free_block* batch = r.spare[i].pop()) put(i, batch, batch->batch_count);
    }
    (r.previous != nullptr ? r.previous->next : threads) = r.next;
    if (r.next != nullptr) r.next->previous = r.previous;
    r.now = thread_record::state::closed;
}

thread_exit::~thread_exit() {
    depot& d = the_depot();
    const std::lock_guard hold(d.mutex);
    d.leave(this_record);
}

// The list is empty: a batch becomes the list, and its first block goes out.
free_block* refill(std::size_t i) noexcept {
    thread_record& r = this_record;
    free_block* batch = r.spare[i].pop();
    if (batch == nullptr) {
        depot& d = the_depot();
        const std::lock_guard hold(d.mutex);
        if (r.now == thread_record::state::closed) return d.take_one(i);
        if (r.now == thread_record::state::unborn) d.enter(r);
        batch = d.take(i);
        if (batch == nullptr) return nullptr;
    }
    block_list& l = r.lists->lists[i];
    l.head = batch->next;
    l.room.store(batch_count(i) + 1 - batch->batch_count, std::memory_order_relaxed);  // I1
    return batch;
}

// The list has no room: as a batch it goes to the spare ones, or, where these are many, to the
// depot. The block begins a new list.
void spill(free_block* b, std::size_t i) noexcept {
    thread_record& r = this_record;
    if (r.now != thread_record::state::open) {
        depot& d = the_depot();
        const std::lock_guard hold(d.mutex);
        if (r.now == thread_record::state::unborn) d.enter(r);
        b->next = nullptr;
        d.put(i, b, 1);
        return;
    }
    block_list& l = r.lists->lists[i];
    if (r.spare[i].count() < spare_limit(i)) {
        r.spare[i].push(l.head, batch_count(i));
    } else {
        depot& d = the_depot();
        const std::lock_guard hold(d.mutex);
        d.put(i, l.head, batch_count(i));
    }
    b->next = nullptr;
    l.head = b;
    l.room.store(batch_count(i) - 1, std::memory_order_relaxed);  // I1
}

constexpr std::align_val_t block_alignment{block_cache::alignment};

// Under ASan no list ever opens, so that each block comes here and is its own allocation.
constexpr bool separate = WEFT_ASAN != 0;

}  // namespace

void* acquire_slow(std::size_t bytes) noexcept {
    const std::size_t i = block_lists::index(bytes);
    if (separate || i >= class_count)
        return ::operator new(bytes, block_alignment, std::nothrow);
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
        std::size_t cached = 0;
        for (const thread_record* r = d.threads; r != nullptr; r = r->next)
            cached += r->spare[i].count() + batch_count(i) -
                      r->lists->lists[i].room.load(std::memory_order_relaxed);
        s.cached_bytes += cached * block_bytes(i);
        s.depot_bytes += c.batches.count() * block_bytes(i);
        s.depot_bytes += static_cast<std::size_t>(c.end - c.uncut);
    }
    s.used_bytes = s.chunk_bytes - s.depot_bytes - s.cached_bytes;
    return s;
}

}  // namespace weft
