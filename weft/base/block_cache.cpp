#include "weft/base/detail/block_cache.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>

#include "weft/base/assert.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/pages.hpp"
#include "weft/base/detail/release_unused.hpp"
#include "weft/base/detail/system_mutex.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::block_lists, weft_tls_block_lists);

namespace weft::detail {

constinit free_block shut_list{nullptr, 0, nullptr};

namespace {

constexpr std::size_t class_count = block_lists::class_count;
constexpr std::size_t batch_bytes = 4 * 1024;
constexpr std::size_t chunk_bytes = 64 * 1024;

// The bytes that are requested from the system at once, twice as much each time: the chunks of a
// class are adjacent within them. A walk over block after block, in either order, then goes as over
// one piece; over single chunks, which the system places one below the other, it takes four times
// as long. The unused part is addresses and no memory.
constexpr std::size_t least_run_bytes = 4 * chunk_bytes;
constexpr std::size_t largest_run_bytes = 64 * chunk_bytes;

constexpr std::size_t block_bytes(std::size_t i) { return (i + 1) * block_lists::step_bytes; }

// A batch is what moves between a thread and the depot at a time: about a page, but never so few
// blocks that the cost of the lock is felt.
constexpr std::size_t batch_count(std::size_t i) {
    const std::size_t n = batch_bytes / block_bytes(i);
    return n < 16 ? 16 : n;
}
constexpr std::size_t spare_limit(std::size_t i) { return 256 * 1024 / block_bytes(i); }
// How far it is counted what a thread owes the depot, so that a burst of as many blocks finds the
// same room each time it comes.
constexpr std::size_t most_debt(std::size_t i) { return 4 * spare_limit(i); }

// What goes back to the chunks at one call, which is some hundred microseconds' work, and what goes
// at least in a period.
constexpr std::size_t most_bytes_at_a_call = 256 * 1024;
constexpr std::size_t least_in_a_period(std::size_t i) { return 16 * batch_count(i); }

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

// What a chunk begins with. It is aligned to its size, so that each of its blocks finds it. Guarded
// by the depot's mutex.
//
// Invariants:
// I3  it is in its class's list of open chunks exactly if it has room: free or uncut blocks
struct chunk {
    chunk* next = nullptr;  // of the open ones, or of those that go
    chunk* previous = nullptr;
    free_block* free = nullptr;  // what has come back
    std::byte* uncut;            // [uncut, end) has never been out
    std::byte* end;
    std::size_t out_count = 0;  // blocks in use, in lists and in batches

    explicit chunk(std::size_t i) noexcept
        : uncut(reinterpret_cast<std::byte*>(this) + block_lists::step_bytes),
          end(uncut + count(i) * block_bytes(i)) {}
    // The blocks of a chunk of this class.
    static constexpr std::size_t count(std::size_t i) {
        return (chunk_bytes - block_lists::step_bytes) / block_bytes(i);
    }
    bool has_room() const noexcept { return free != nullptr || uncut != end; }
};
static_assert(sizeof(chunk) <= block_lists::step_bytes);

chunk& chunk_of(free_block* b) noexcept {
    return *reinterpret_cast<chunk*>(reinterpret_cast<std::uintptr_t>(b) & ~(chunk_bytes - 1));
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

// What one thread holds besides its lists, between its first slow path and its exit.
//
// Invariants:
// I4  spare[i] holds less than a batch more than room[i], which is debt[i] or spare_limit(i)
struct thread_record {
    thread_record* next = nullptr;  // of those without a thread
    batch_stack spare[class_count];
    std::size_t spare_count = 0;         // blocks in all of them
    std::size_t debt[class_count] = {};  // blocks that it fetched from the depot and did not bring
    std::size_t room[class_count] = {};  // for spare blocks
    std::size_t lowest[class_count] = {};  // the blocks that `spare` came down to in the period
    time_point period_end = time_point::min();

    void push(std::size_t i, free_block* batch) noexcept {
        spare_count += length(i, batch);
        spare[i].push(i, batch);
    }
    free_block* pop(std::size_t i) noexcept {
        free_block* const batch = spare[i].pop(i);
        if (batch != nullptr) spare_count -= length(i, batch);
        lowest[i] = std::min(lowest[i], spare[i].block_count);
        return batch;
    }

    // A thread keeps as much as it comes back for. One that only releases keeps nothing, as it
    // may never be heard of again.
    void fetched(std::size_t i, std::size_t n) noexcept {
        debt[i] = std::min(debt[i] + n, most_debt(i));
        room[i] = std::min(debt[i], spare_limit(i));
    }
    void brought(std::size_t i, std::size_t n) noexcept {
        debt[i] -= std::min(debt[i], n);
        room[i] = std::min(debt[i], spare_limit(i));
    }
};

// Where a thread has its record: not here, since a shared object that is opened in a running
// program finds little room for what is a thread's (tls.hpp).
struct thread_place {
    thread_record* record = nullptr;
    bool is_closed = false;  // the thread's exit has passed here
};

constinit thread_local thread_place this_place;

// What happens at thread exit. Apart from the place, which is used after it.
struct thread_exit {
    bool watched = false;
    ~thread_exit();
};

constinit thread_local thread_exit this_exit;

// What the threads share; guarded by `mutex`.
//
// Invariants:
// I2  every chunk is cut into blocks of one class; its blocks are in use, in a thread's
//     list or spare, in a batch here, or in the chunk: free or not cut yet
struct depot {
    struct size_class {
        batch_stack batches;
        unused unused_blocks;  // of the batches
        chunk* open = nullptr;
        std::byte* unopened = nullptr;  // [unopened, end) is for its next chunks, never touched
        std::byte* end = nullptr;
        std::size_t next_run_bytes = least_run_bytes;
        std::size_t block_count = 0;  // of all chunks
        std::size_t room_count = 0;   // of these, those in their chunks
    };

    system_mutex mutex;
    size_class classes[class_count];
    chunk* kept = nullptr;             // of no class: the system did not take them back
    thread_record* records = nullptr;  // of no thread; as many in all as there were threads at once
    atomic<std::size_t> stock{0};      // blocks in all batches; read without the lock, as a hint

    thread_record* take_record() noexcept;
    void put_back(thread_record& r) noexcept;
    void push(std::size_t i, free_block* batch) noexcept;
    free_block* pop(std::size_t i) noexcept;
    free_block* take(std::size_t i) noexcept;
    free_block* take_one(std::size_t i) noexcept;
    bool grow(std::size_t i) noexcept;
    free_block* cut(std::size_t i) noexcept;
    void bring_unused(thread_record& r, time_point now) noexcept;
    chunk* put_back(std::size_t i, free_block* batch, chunk* gone) noexcept;
    void open(std::size_t i, chunk& c) noexcept;
    void close(std::size_t i, chunk& c) noexcept;
};

// Never destroyed: blocks are released by the last destructor of the program too.
depot& the_depot() noexcept {
    alignas(depot) static std::byte storage[sizeof(depot)];
    static depot& d = *new (storage) depot;
    return d;
}

// Null when no memory can be had.
thread_record* depot::take_record() noexcept {
    constexpr std::size_t page_bytes = 4096;
    if (records == nullptr) {
        auto* const page = static_cast<std::byte*>(try_acquire_pages(page_bytes));
        if (page == nullptr) return nullptr;
        for (std::size_t at = 0; at + sizeof(thread_record) <= page_bytes;
             at += sizeof(thread_record))
            put_back(*::new (page + at) thread_record);
    }
    thread_record* const r = records;
    records = r->next;
    return ::new (r) thread_record;
}

void depot::put_back(thread_record& r) noexcept {
    r.next = records;
    records = &r;
}

void depot::push(std::size_t i, free_block* batch) noexcept {
    // Relaxed: written under the lock, and a hint to all others.
    stock.store(stock.load(std::memory_order_relaxed) + length(i, batch),
                std::memory_order_relaxed);
    classes[i].batches.push(i, batch);
}

free_block* depot::pop(std::size_t i) noexcept {
    free_block* const batch = classes[i].batches.pop(i);
    if (batch != nullptr)  // relaxed: as in push()
        stock.store(stock.load(std::memory_order_relaxed) - length(i, batch),
                    std::memory_order_relaxed);
    return batch;
}

// A batch, or null when no memory can be had.
free_block* depot::take(std::size_t i) noexcept {
    free_block* batch = pop(i);
    classes[i].unused_blocks.taken(classes[i].batches.block_count);
    return batch != nullptr ? batch : cut(i);
}

// For a thread that keeps no list.
free_block* depot::take_one(std::size_t i) noexcept {
    free_block* batch = take(i);
    if (batch != nullptr && length(i, batch) > 1) push(i, batch->next);
    return batch;
}

// Opens a new chunk. Its own pages and not the heap's, where live blocks above would keep them.
bool depot::grow(std::size_t i) noexcept {
    size_class& in = classes[i];
    void* pages = kept;
    if (pages != nullptr) {
        kept = kept->next;
    } else {
        if (in.unopened == in.end) {
            const std::size_t bytes = in.next_run_bytes;
            auto* const run = static_cast<std::byte*>(try_acquire_aligned_pages(bytes));
            if (run == nullptr) return false;
            in.unopened = run;
            in.end = run + bytes;
            in.next_run_bytes = std::min(2 * bytes, largest_run_bytes);
        }
        pages = in.unopened;
        in.unopened += chunk_bytes;
    }
    in.block_count += chunk::count(i);
    in.room_count += chunk::count(i);
    open(i, *::new (pages) chunk(i));
    return true;
}

// Makes the next batch out of what the chunks have, and of a new one if they have nothing. What has
// never been out is linked in the order of addresses.
free_block* depot::cut(std::size_t i) noexcept {
    size_class& in = classes[i];
    if (in.open == nullptr && !grow(i)) return nullptr;
    free_block* first = &ends.of_class[i];
    while (first->left != 0 && in.open != nullptr) {
        chunk& c = *in.open;
        const std::size_t left = first->left;
        while (c.free != nullptr && first->left != 0) {
            free_block* const b = c.free;
            c.free = b->next;
            first = ::new (b) free_block{first, first->left - 1, nullptr};
        }
        std::size_t count =
            std::min(first->left, static_cast<std::size_t>(c.end - c.uncut) / block_bytes(i));
        std::byte* at = c.uncut += count * block_bytes(i);
        for (; count != 0; --count) {
            at -= block_bytes(i);
            first = ::new (at) free_block{first, first->left - 1, nullptr};
        }
        c.out_count += left - first->left;
        in.room_count -= left - first->left;
        if (!c.has_room()) close(i, c);
    }
    return first;
}

time_point release_unused_blocks(time_point now) noexcept;
constinit memory_keeper keeper{release_unused_blocks};

free_block*& list_of_this_thread(std::size_t i) noexcept {
    return this_block_lists().heads[i].first;
}

// This thread begins to keep lists, if its record can be had.
thread_record* open(thread_place& place) noexcept {
    {
        depot& d = the_depot();
        const std::lock_guard hold(d.mutex);
        place.record = d.take_record();
    }
    if (place.record == nullptr) return nullptr;
    for (std::size_t i = 0; i < class_count; ++i) list_of_this_thread(i) = &ends.of_class[i];
    this_exit.watched = true;  // the first use is what has the destructor run
    keeper.enter();
    return place.record;
}

// Null for a thread that keeps no lists.
thread_record* record_of_this_thread() noexcept {
    thread_place& place = this_place;
    return place.record != nullptr || place.is_closed ? place.record : open(place);
}

thread_exit::~thread_exit() {
    thread_record& r = *this_place.record;
    depot& d = the_depot();
    const std::lock_guard hold(d.mutex);
    for (std::size_t i = 0; i < class_count; ++i) {
        free_block*& first = list_of_this_thread(i);
        if (first->next != nullptr) d.push(i, first);
        first = &shut_list;
        while (free_block* batch = r.pop(i)) d.push(i, batch);
    }
    d.put_back(r);
    this_place = {nullptr, true};
}

// The list is empty: a batch becomes the list, and its first block goes out.
free_block* refill(std::size_t i) noexcept {
    thread_record* const r = record_of_this_thread();
    free_block* batch = r != nullptr ? r->pop(i) : nullptr;
    if (batch == nullptr) {
        depot& d = the_depot();
        const std::lock_guard hold(d.mutex);
        if (r == nullptr) return d.take_one(i);
        batch = d.take(i);
        if (batch == nullptr) return nullptr;
        r->fetched(i, length(i, batch));
    }
    list_of_this_thread(i) = batch->next;
    return batch;
}

// The list has no room: as a batch it goes to the spare ones, or, where these are many, to the
// depot. The block begins a new list.
void spill(free_block* b, std::size_t i) noexcept {
    thread_record* const r = record_of_this_thread();
    depot& d = the_depot();
    if (r == nullptr) {
        const std::lock_guard hold(d.mutex);
        d.push(i, alone(i, b));
        return;
    }
    free_block*& first = list_of_this_thread(i);
    if (first->left != 0) {  // opened just now
        b->left = first->left - 1;
        b->next = first;
    } else {
        if (r->spare[i].block_count < r->room[i]) {
            r->push(i, first);
        } else {
            r->brought(i, length(i, first));
            const std::lock_guard hold(d.mutex);
            d.push(i, first);
            while (r->spare[i].block_count > r->room[i]) d.push(i, r->pop(i));  // I4
        }
        alone(i, b);
    }
    first = b;
}

// Once a period, brings to the depot the spare batches that the thread has not needed since its
// last visit; and its lists, whose few blocks may each keep a chunk.
void depot::bring_unused(thread_record& r, time_point now) noexcept {
    if (now < r.period_end) return;
    r.period_end = after(now, unused_period);
    for (std::size_t i = 0; i < class_count; ++i) {
        const std::size_t rest = r.spare[i].block_count - r.lowest[i];
        while (r.spare[i].block_count > rest) push(i, r.pop(i));
        r.lowest[i] = r.spare[i].block_count;
        free_block*& first = list_of_this_thread(i);
        if (first->next != nullptr) push(i, first);
        first = &ends.of_class[i];
    }
}

// Its blocks go to their chunks. Those of which none is out any more are linked before `gone`; the
// first of these is returned.
chunk* depot::put_back(std::size_t i, free_block* batch, chunk* gone) noexcept {
    size_class& in = classes[i];
    for (free_block* b = batch; b->next != nullptr;) {
        free_block* const next = b->next;
        chunk& c = chunk_of(b);
        if (!c.has_room()) open(i, c);
        b->next = c.free;
        c.free = b;
        ++in.room_count;
        if (--c.out_count == 0) {
            close(i, c);
            in.room_count -= chunk::count(i);
            in.block_count -= chunk::count(i);
            c.next = gone;
            gone = &c;
        }
        b = next;
    }
    return gone;
}

void depot::open(std::size_t i, chunk& c) noexcept {  // I3
    chunk*& first = classes[i].open;
    c.previous = nullptr;
    c.next = first;
    if (first != nullptr) first->previous = &c;
    first = &c;
}

void depot::close(std::size_t i, chunk& c) noexcept {
    (c.previous != nullptr ? c.previous->next : classes[i].open) = c.next;
    if (c.next != nullptr) c.next->previous = c.previous;
}

time_point release_unused_blocks(time_point now) noexcept {
    depot& d = the_depot();
    thread_record* const r = this_place.record;
    // Relaxed: a hint.
    if (d.stock.load(std::memory_order_relaxed) == 0 && (r == nullptr || r->spare_count == 0))
        return never;
    time_point next = never;
    chunk* gone = nullptr;
    {
        const std::lock_guard hold(d.mutex);
        if (r != nullptr) d.bring_unused(*r, now);
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < class_count; ++i) {
            depot::size_class& in = d.classes[i];
            std::size_t spare =
                in.unused_blocks.spare(now, in.batches.block_count, least_in_a_period(i));
            while (spare != 0 && bytes < most_bytes_at_a_call) {
                free_block* const batch = d.pop(i);
                const std::size_t count = length(i, batch);
                gone = d.put_back(i, batch, gone);
                in.unused_blocks.given(count);
                spare -= std::min(count, spare);
                bytes += count * block_bytes(i);
            }
            if (in.batches.block_count != 0) next = std::min(next, in.unused_blocks.next(now));
        }
    }
    while (gone != nullptr) {
        chunk* const c = gone;
        gone = c->next;
        if (release_pages(c, chunk_bytes)) continue;
        const std::lock_guard hold(d.mutex);
        c->next = d.kept;
        d.kept = c;
    }
    return r != nullptr && r->spare_count != 0 ? std::min(next, r->period_end) : next;
}

constexpr std::align_val_t cache_alignment{block_cache::alignment};

// Under ASan no list ever opens, so that each block comes here and is its own allocation.
constexpr bool separate = WEFT_ASAN != 0;

}  // namespace

void* acquire_slow(std::size_t bytes) noexcept {
    const std::size_t i = block_lists::index(bytes);
    if (separate || i >= class_count) return ::operator new(bytes, cache_alignment, std::nothrow);
    return refill(i);
}

void release_slow(void* p, std::size_t bytes) noexcept {
    const std::size_t i = block_lists::index(bytes);
    if (separate || i >= class_count)
        ::operator delete(p, cache_alignment);
    else
        spill(static_cast<free_block*>(p), i);
}

void throw_out_of_memory() {
#if WEFT_EXCEPTIONS
    throw std::bad_alloc();
#else
    fail("out of memory", {}, unknown_caller);
#endif
}

block_cache_stats block_cache::stats() noexcept {
    depot& d = the_depot();
    const std::lock_guard hold(d.mutex);
    block_cache_stats s{};
    for (std::size_t i = 0; i < class_count; ++i) {
        const depot::size_class& c = d.classes[i];
        s.chunk_bytes += c.block_count * block_bytes(i);
        s.depot_bytes += (c.batches.block_count + c.room_count) * block_bytes(i);
        if (const thread_record* const r = this_place.record; r != nullptr)
            s.cached_bytes +=
                block_bytes(i) * (r->spare[i].block_count + length(i, list_of_this_thread(i)));
    }
    s.used_bytes = s.chunk_bytes - s.depot_bytes - s.cached_bytes;
    return s;
}

}  // namespace weft::detail
