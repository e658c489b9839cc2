#include "weft/io/descriptor.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>

#include "weft/base/platform.hpp"
#include "weft/io/io_driver.hpp"

namespace weft {
namespace detail {
namespace {

// Invariants:
// T1  a chunk is put in once and stays for good: an event may name any number at any time
constexpr std::size_t chunk_entries = 256;
constexpr std::size_t top_entries = 4096;
constexpr std::size_t most_numbers = chunk_entries * chunk_entries * top_entries;

struct chunk {
    explicit chunk(int first) noexcept {
        for (io_entry& e : entries) e.number = first++;
    }
    io_entry entries[chunk_entries];
};
struct middle {
    explicit middle(int) noexcept {}
    atomic<chunk*> chunks[chunk_entries];
};
constinit atomic<middle*> table[top_entries];

// What `at` points to; made, if that is asked for, where it is not there. Null: no memory.
template <bool make, class T>
T* there(atomic<T*>& at, int first) noexcept {
    T* p = at.load(std::memory_order_acquire);  // pairs with the exchange below
    if (!make || p != nullptr) return p;
    std::unique_ptr<T> fresh(new (std::nothrow) T(first));
    if (!fresh) return nullptr;
    return at.compare_exchange_strong(p, fresh.get(), std::memory_order_acq_rel) ? fresh.release()
                                                                                 : p;
}

template <bool make>
io_entry* entry_of(int number) noexcept {
    const auto n = static_cast<unsigned>(number);
    if (n >= most_numbers) return nullptr;  // or negative
    const int first = number - static_cast<int>(n % chunk_entries);
    middle* m = there<make>(table[n / (chunk_entries * chunk_entries)], first);
    if (m == nullptr) return nullptr;
    chunk* c = there<make>(m->chunks[n / chunk_entries % chunk_entries], first);
    return c != nullptr ? &c->entries[n % chunk_entries] : nullptr;
}

// Those of one direction, or of both, out of the entry; woken when its lock is released.
void claim_all(wait_list& from, wait_list& into) noexcept {
    while (wait_node* n = from.pop_front())
        if (n->owner->claim()) into.push_back(*n);
}

// The same, but the first of them is the result; null if its wait has ended otherwise.
WEFT_ALWAYS_INLINE wait_node* claim_first(wait_list& from, wait_list& others) noexcept {
    wait_node* const n = from.pop_front();
    if (n == nullptr) return nullptr;
    if (!from.empty()) [[unlikely]]
        claim_all(from, others);
    return n->owner->claim() ? n : nullptr;
}

WEFT_ALWAYS_INLINE void wake(wait_node& claimed) noexcept {
    prefetch(claimed.owner->of);
    claimed.owner->wake_in_order();
}

}  // namespace

io_entry* find_entry(int number) noexcept { return entry_of<false>(number); }

std::uint64_t flags_of_poll(unsigned events) noexcept {
    std::uint64_t flags = 0;
    if ((events & (POLLIN | POLLPRI)) != 0) flags |= io_entry::readable;
    if ((events & POLLOUT) != 0) flags |= io_entry::writable;
    if ((events & POLLRDHUP) != 0) flags |= io_entry::readable | io_entry::ended;
    // POLLNVAL: closed behind weft's back; the next call will say so.
    if ((events & (POLLHUP | POLLERR | POLLNVAL)) != 0)
        flags |= io_entry::readable | io_entry::writable | io_entry::ended;
    return flags;
}

void for_each_entry(void (*f)(io_entry&, void*), void* with) noexcept {
    for (auto& top : table) {
        middle* m = top.load(std::memory_order_acquire);  // pairs with there()
        if (m == nullptr) continue;
        for (auto& at : m->chunks)
            if (chunk* c = at.load(std::memory_order_acquire))
                for (io_entry& e : c->entries) f(e, with);
    }
}

// Who waits stands in the queue with a node of his operation, and his waiter lies below that in the
// same frame; no more than this is touched until he has had his turn.
void io_entry::fetch_waiting(std::uint64_t flags) const noexcept {
    const wait_list& queue = waiting[(flags & readable) != 0 ? 0 : 1];
    const void* const node = queue.glance();
    if (node != static_cast<const void*>(&queue)) prefetch_around(node, 6, 1);
}

void io_entry::notify(std::uint32_t generation, std::uint64_t flags) noexcept {
    std::uint64_t now = word.load(std::memory_order_relaxed);
    std::uint64_t next;
    do {
        if (generation_of(now) != generation || (now & closed) != 0) return;
        next = (now & ~events) | ((now + event) & events) | flags;
        // Release: pairs with enter().
    } while (!word.compare_exchange_weak(now, next, std::memory_order_release,
                                         std::memory_order_relaxed));
    // Mostly it is one who waits, and needs no list.
    wait_node* first = nullptr;
    wait_list others;
    {
        const std::lock_guard held(lock);  // D1
        if ((flags & readable) != 0) first = claim_first(waiting[0], others);
        if ((flags & writable) != 0 && !waiting[1].empty()) claim_all(waiting[1], others);
    }
    if (first != nullptr) wake(*first);
    while (wait_node* n = others.pop_front()) wake(*n);
}

void io_entry::claim_waiting(wait_list& into) noexcept {
    for (wait_list& queue : waiting) claim_all(queue, into);
}

short io_entry::wanted(std::uint32_t generation) noexcept {
    const std::lock_guard held(lock);
    if (generation_of(word.load(std::memory_order_relaxed)) != generation) return 0;
    return static_cast<short>((waiting[0].empty() ? 0 : POLLIN | POLLPRI) |
                              (waiting[1].empty() ? 0 : POLLOUT));
}

void io_entry::watch_again(std::uint32_t generation, io_driver& d) noexcept {
    const std::lock_guard held(lock);
    const std::uint64_t now = word.load(std::memory_order_relaxed);
    if (generation_of(now) != generation || (now & closed) != 0 || !forget_watcher(d)) return;
    static_cast<void>(be_watched_by(d, generation));  // if not: who waits next asks again
}

std::error_code io_entry::be_watched_by(io_driver& d, std::uint32_t generation) noexcept {
    if (watchers[0] != &d) {
        if (watchers[1] != &d) {
            if (const std::error_code e = d.watch(*this, generation)) return e;
            watchers[1] = &d;
        }
        std::swap(watchers[0], watchers[1]);
    }
    d.enlisted();
    return {};
}

void io_entry::forget_watchers(bool stays_open) noexcept {
    // Relaxed: it does not change while somebody is a user.
    const std::uint32_t generation = generation_of(word.load(std::memory_order_relaxed));
    for (io_driver*& w : watchers)
        if (w != nullptr) std::exchange(w, nullptr)->forget(*this, generation, stays_open);
}

bool io_entry::forget_watcher(const io_driver& d) noexcept {
    for (io_driver*& w : watchers) {
        if (w != &d) continue;
        w = nullptr;
        return true;
    }
    return false;
}

// D3
void io_entry::last_out(std::uint64_t seen) noexcept {
    // Whoever came in meanwhile, with an old generation, is the last one in his turn.
    const std::uint64_t free = seen & ~owed;
    // Acquire: pairs with leave() of each other user; release: with the next adoption of the
    // number.
    if (word.compare_exchange_strong(seen, free, std::memory_order_acq_rel)) ::close(number);
}

}  // namespace detail

using detail::io_entry;

descriptor_ref descriptor_ref::adopt(int number, std::uint64_t kind,
                                     std::error_code& error) noexcept {
    io_entry* e = detail::entry_of<true>(number);
    if (e == nullptr) {
        error = std::make_error_code(number < 0 ? std::errc::bad_file_descriptor
                                                : std::errc::not_enough_memory);
        return {};
    }
    std::uint64_t now = e->word.load(std::memory_order_acquire);
    std::uint64_t next;
    do {
        const std::uint64_t generation = std::uint64_t{io_entry::generation_of(now) + 1u}
                                         << io_entry::generation_shift;
        // Others may be passing through enter() with an old generation: they are counted on.
        next =
            generation | (now & io_entry::users) | io_entry::readable | io_entry::writable | kind;
    } while (!e->word.compare_exchange_weak(now, next, std::memory_order_acq_rel,
                                            std::memory_order_acquire));
    error.clear();
    return {*e, io_entry::generation_of(next)};
}

descriptor_ref descriptor_ref::find(int number) noexcept {
    io_entry* e = detail::find_entry(number);
    if (e == nullptr) return {};
    const std::uint64_t now = e->word.load(std::memory_order_acquire);
    if ((now & io_entry::closed) != 0) return {};
    return {*e, io_entry::generation_of(now)};
}

bool descriptor_ref::is_open() const noexcept {
    if (entry_ == nullptr) return false;
    const std::uint64_t now = entry_->word.load(std::memory_order_acquire);  // pairs with close()
    return io_entry::generation_of(now) == generation_ && (now & io_entry::closed) == 0;
}

bool descriptor_ref::close() const noexcept {
    if (entry_ == nullptr) return false;
    io_entry& e = *entry_;
    std::uint64_t seen;
    if (!e.enter(generation_, seen)) return false;
    const std::uint64_t before =
        e.word.fetch_or(io_entry::closed | io_entry::owed, std::memory_order_acq_rel);
    const bool first = (before & io_entry::closed) == 0;
    if (first) {
        wait_list woken;
        {
            const std::lock_guard held(e.lock);
            e.claim_waiting(woken);
            e.forget_watchers(false);
        }
        wait_queue::wake_all(woken);
        // A call that the system has under way comes back from it.
        if ((before & io_entry::users) != io_entry::user) ::shutdown(e.number, SHUT_RDWR);
    }
    e.leave(seen, 0);
    return first;
}

int descriptor_ref::release() const noexcept {
    if (entry_ == nullptr) return -1;
    io_entry& e = *entry_;
    std::uint64_t seen;
    if (!e.enter(generation_, seen)) return -1;
    {
        const std::lock_guard held(e.lock);
        WEFT_ASSERT(e.waiting[0].empty() && e.waiting[1].empty(),
                    "release of a descriptor that somebody waits for");
        e.forget_watchers(true);
    }
    e.word.fetch_or(io_entry::closed, std::memory_order_acq_rel);
    e.leave(seen, 0);
    return e.number;
}

}  // namespace weft
