#include "weft/io/detail/io_entry.hpp"

#include <cerrno>
#include <mutex>
#include <system_error>

#include "weft/base/detail/spin_wait.hpp"
#include "weft/base/platform.hpp"
#include "weft/io/io_driver.hpp"

namespace weft::detail {
namespace {

// Takes the waiters of one direction out of the entry and claims them; they are to be woken when
// the lock is released.
void claim_all(wait_list& from, wait_list& into) noexcept {
    while (wait_node* n = from.pop_front())
        if (n->owner->claim()) into.push_back(*n);
}

// The same, but the first waiter is the result; null if its wait has ended otherwise.
WEFT_ALWAYS_INLINE wait_node* claim_first(wait_list& from, wait_list& others) noexcept {
    wait_node* const n = from.pop_front();
    if (n == nullptr) return nullptr;
    if (!from.empty()) [[unlikely]]
        claim_all(from, others);
    return n->owner->claim() ? n : nullptr;
}

bool is_for(const wait_node& n, const io_driver& d) noexcept {
    return static_cast<const io_wait_node&>(n).by == &d;
}

bool has_one_for(const wait_list& queue, const io_driver& d) noexcept {
    for (const wait_node& n : queue)
        if (is_for(n, d)) return true;
    return false;
}

// If several drivers watch: claims the waiters that `by` wakes. The drivers of the others wake
// those. E7
void claim_told(wait_list& from, const io_driver& by, wait_list& into) noexcept {
    if (!has_one_for(from, by)) return claim_all(from, into);
    for (auto at = from.begin(); at != from.end();) {
        wait_node& n = *at++;
        if (!is_for(n, by)) continue;
        from.remove(n);
        if (n.owner->claim()) into.push_back(n);
    }
}

WEFT_ALWAYS_INLINE void wake(wait_node& claimed) noexcept {
    prefetch(claimed.owner->of);
    claimed.owner->wake_in_order();
}

}  // namespace

bool io_entry::enter_rarely(std::uint64_t generation) noexcept {
    for (spin_wait w;;) {
        leave();
        if (!is_open(generation)) return false;
        w.once();  // the entry is crowded
        const std::uint64_t before = life.fetch_add(user, std::memory_order_acquire);  // as enter()
        if (is_open_in(before, generation) && (before & crowd) == 0) return true;
    }
}

// E3
void io_entry::last_out(std::uint64_t seen) noexcept {
    // A caller that came in meanwhile with an old generation is then the last user. Acquire: pairs
    // with leave() of each other user; release: with the next open() of the fd.
    if (life.compare_exchange_strong(seen, seen & ~owed, std::memory_order_acq_rel))
        give_number_back(number);
}

// E1, E4, E5
std::uint64_t io_entry::open_now(std::uint64_t kind, std::uint64_t flags, ended& by) noexcept {
    std::uint64_t now = life.load(std::memory_order_relaxed);  // tested by the exchange
    // Still open: it was closed without weft.
    if ((now & closed) == 0) end_now(true, by);
    borrowers = 0;
    // Relaxed, both: the exchange of `life` below publishes it to every enter().
    std::uint64_t r = ready.load(std::memory_order_relaxed);
    while (!ready.compare_exchange_weak(
        r, ((r + event) & ~(event - 1)) | readable | writable | urgent | far_end | kind,
        std::memory_order_relaxed)) {  // as above
    }
    std::uint64_t next;
    do {
        // Callers may be in enter() with an old generation: their counts are kept.
        next = (generation_of(now) + 1) << generation_shift | (now & users) | flags;
        // Release: pairs with enter(). Acquire: with leave() of the users before. Relaxed on
        // failure: the exchange tests it.
    } while (!life.compare_exchange_weak(now, next, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
    return generation_of(next);
}

// Takes the waiters out of the entry and notifies the drivers. E5, E6
void io_entry::end_now(bool stays_open, ended& by) noexcept {
    const std::uint64_t now = life.load(std::memory_order_relaxed);  // as in close()
    const auto generation = static_cast<std::uint32_t>(generation_of(now));
    const bool has_calls = (now & users) > user;  // close() is a user itself
    for (wait_list& queue : waiting) claim_all(queue, by.waiters);
    by.drivers.take(drivers, [&](io_driver& d, std::uintptr_t what) {
        const bool leaves = (what & watcher_set::watches) != 0;
        const bool cancels = (what & watcher_set::serves) != 0 && has_calls;
        if (leaves) d.deregister(*this, generation, stays_open);
        if (cancels) d.cancel_calls(*this, generation);
        if (!d.holds_files() || (!leaves && !cancels)) return false;
        d.hold();
        return true;
    });
}

// Drivers first: what they cancel keeps the file open.
void io_entry::ended::wake_all() noexcept {
    drivers.for_each([](io_driver& d, std::uintptr_t) { d.wake_and_release(); });
    wait_queue::wake_all(waiters);
}

std::uint64_t io_entry::open(std::uint64_t kind) noexcept {
    ended by;
    std::uint64_t generation;
    {
        const std::lock_guard held(lock);
        generation = open_now(kind, 0, by);
    }
    by.wake_all();
    return generation;
}

bool io_entry::close(std::uint64_t generation) noexcept {
    ended by;
    {
        const std::lock_guard held(lock);
        // Relaxed: it is opened and closed under the lock alone.
        if (!is_open_in(life.load(std::memory_order_relaxed), generation)) return false;
        // The closer is a user too, so that the fd is given back after all that follows. E1
        // Acquire and release: pairs with is_open().
        life.fetch_add(closed + owed + user, std::memory_order_acq_rel);
        end_now(false, by);
    }
    by.wake_all();
    leave();
    return true;
}

bool io_entry::end(std::uint64_t generation) noexcept {
    ended by;
    {
        const std::lock_guard held(lock);
        // Relaxed: as in close().
        if (!is_open_in(life.load(std::memory_order_relaxed), generation)) return false;
        life.fetch_or(closed, std::memory_order_acq_rel);  // pairs with is_open()
        end_now(true, by);
    }
    by.wake_all();
    return true;
}

std::uint64_t io_entry::borrow(bool& counts) noexcept {
    ended none;
    const std::lock_guard held(lock);
    const std::uint64_t now = life.load(std::memory_order_relaxed);  // as in close()
    counts = (now & (closed | borrowed)) != 0;
    if (!counts) return generation_of(now);
    // The cancellation of its calls relies on the generation, and its last user on `owed`: both
    // must stay. E3
    if ((now & owed) != 0) {
        counts = false;
        return 0;
    }
    if (borrowers == UINT16_MAX) return 0;
    const std::uint64_t generation =
        (now & closed) != 0 ? open_now(0, borrowed, none) : generation_of(now);
    ++borrowers;
    return generation;
}

void io_entry::release_borrowed(std::uint64_t generation) noexcept {
    ended by;
    {
        const std::lock_guard held(lock);
        const std::uint64_t now = life.load(std::memory_order_relaxed);  // as in close()
        // If the fd was opened as weft's own since then, nothing is borrowed any more.
        if (!is_open_in(now, generation) || (now & borrowed) == 0 || --borrowers != 0) return;
        life.fetch_or(closed, std::memory_order_acq_rel);  // pairs with is_open()
        end_now(true, by);
    }
    by.wake_all();
}

// A waiter is queued by a node of its operation, and is stored below that node in the same frame;
// nothing else of it is touched before its flow has its turn.
void io_entry::fetch_waiting(std::uint64_t flags) const noexcept {
    const wait_list& queue = waiting[(flags & readable) != 0 ? 0 : 1];
    const void* const node = queue.peek();
    if (node != static_cast<const void*>(&queue)) prefetch_around(node, 6, 1);
}

void io_entry::notify(std::uint64_t generation, std::uint64_t flags, const io_driver* by) noexcept {
    const auto last_bits = static_cast<std::uint32_t>(generation);
    // Relaxed: the caller has the generation from what came after its open(); it may be closed at
    // any time.
    if (!is_open_and_ends(life.load(std::memory_order_relaxed), last_bits)) return;
    std::uint64_t now = ready.load(std::memory_order_relaxed);  // tested by the exchange
    // Release: pairs with look().
    while (!ready.compare_exchange_weak(now, (now + event) | flags, std::memory_order_release,
                                        std::memory_order_relaxed)) {
    }
    // Usually there is one waiter, and no list is needed.
    wait_node* first = nullptr;
    wait_list others;
    {
        const std::lock_guard held(lock);  // E2
        const bool reads = (flags & (readable | urgent | far_end)) != 0;
        const bool writes = (flags & writable) != 0 && !waiting[1].empty();
        if (by == nullptr || drivers.is_only(*by, watcher_set::watches)) [[likely]] {
            if (reads) first = claim_first(waiting[0], others);
            if (writes) claim_all(waiting[1], others);
        } else {
            if (reads) claim_told(waiting[0], *by, others);
            if (writes) claim_told(waiting[1], *by, others);
        }
    }
    if (first != nullptr) wake(*first);
    while (wait_node* n = others.pop_front()) wake(*n);
}

// E2
int io_entry::enlist(io_wait_node& n, std::uint64_t generation, std::uint64_t flags, io_driver& d,
                     io_wait_node* also) noexcept {
    lock.lock();
    // Relaxed: enter() and look() acquire, before the next call.
    if ((ready.load(std::memory_order_relaxed) & flags) != 0 ||
        !is_open_in(life.load(std::memory_order_relaxed), generation)) {
        lock.unlock();
        return look_again;
    }
    const bool for_room = (flags & writable) != 0;
    if (!drivers.is_only(d, for_room ? watcher_set::room : watcher_set::watches) ||
        also != nullptr || d.asks_anew()) [[unlikely]]
        return enlist_rarely(n, generation, for_room, d, also);
    n.by = &d;
    waiting[for_room ? 1 : 0].push_back(n);
    lock.unlock();
    return stands;
}

// Apart from the frequent case, which makes no call. Releases the lock.
WEFT_NOINLINE int io_entry::enlist_rarely(io_wait_node& n, std::uint64_t generation, bool for_room,
                                          io_driver& d, io_wait_node* also) noexcept {
    const std::lock_guard held(lock, std::adopt_lock);
    if (const int error = be_watched_by(d, static_cast<std::uint32_t>(generation), for_room))
        return error;
    if (d.asks_anew()) d.enlisted();
    n.by = &d;
    waiting[for_room ? 1 : 0].push_back(n);
    if (also != nullptr) {
        also->by = &d;
        waiting[0].push_back(*also);
    }
    return stands;
}

void io_entry::cancel(wait_node& n, bool reads) noexcept {
    const std::lock_guard held(lock);
    if (n.is_linked()) waiting[reads ? 0 : 1].remove(n);
}

int io_entry::be_watched_by(io_driver& d, std::uint32_t generation, bool for_room) noexcept {
    constexpr std::uintptr_t watches = watcher_set::watches;
    constexpr std::uintptr_t room = watcher_set::room;
    if (drivers.has(d, for_room ? room : watches)) return 0;
    if (drivers.has(d, watcher_set::refuses)) return EPERM;
    const bool is_more = drivers.has(d, watches);
    // Relaxed: the fd type changes under the lock alone.
    const bool at_once = for_room || !d.watches_room_apart() ||
                         (ready.load(std::memory_order_relaxed) & short_is_all) != 0;
    if (!drivers.add(d, at_once ? watches | room : watches)) return ENOMEM;
    const std::error_code error =
        is_more ? d.watch_room(*this, generation) : d.watch(*this, generation);
    if (error) drivers.remove(d, is_more ? room : watches);
    return error.value();
}

bool io_entry::be_served_rarely(io_driver& d) noexcept {
    const std::lock_guard held(lock);
    // If it was closed after the call began, d cancels the calls itself. Relaxed, both: as in
    // close().
    if ((life.load(std::memory_order_relaxed) & closed) != 0) {
        d.cancel_calls(
            *this, static_cast<std::uint32_t>(generation_of(life.load(std::memory_order_relaxed))));
        return true;
    }
    return drivers.add(d, watcher_set::serves);
}

bool io_entry::is_watched_by(const io_driver& d) noexcept {
    const std::lock_guard held(lock);
    return drivers.has(d, watcher_set::watches);
}

void io_entry::deregister_driver(io_driver& d) noexcept {
    wait_list woken;
    {
        const std::lock_guard held(lock);
        drivers.remove(d, watcher_set::serves | watcher_set::refuses);
        if (drivers.remove(d, watcher_set::watches))
            for (wait_list& queue : waiting) claim_all(queue, woken);
    }
    wait_queue::wake_all(woken);
}

void io_entry::rewatch(std::uint32_t generation, io_driver& d, io_driver* instead) noexcept {
    wait_list woken;
    {
        const std::lock_guard held(lock);
        const bool for_room = drivers.has(d, watcher_set::room);
        // Relaxed: as in close().
        if (!is_open_and_ends(life.load(std::memory_order_relaxed), generation) ||
            !drivers.remove(d, watcher_set::watches))
            return;
        const int error =
            instead != nullptr ? be_watched_by(*instead, generation, for_room) : EMFILE;
        const bool is_watched = error == 0;
        // Else each waiter that looks again would have d watch it again. Without memory for the
        // note it does.
        if (error == EPERM) static_cast<void>(drivers.add(d, watcher_set::refuses));
        for (wait_list& queue : waiting) {
            if (!is_watched)
                claim_all(queue, woken);
            else
                for (wait_node& n : queue)
                    if (is_for(n, d)) static_cast<io_wait_node&>(n).by = instead;  // E7
        }
    }
    wait_queue::wake_all(woken);
}

short io_entry::wanted(std::uint32_t generation, const io_driver& by) noexcept {
    const std::lock_guard held(lock);
    // Relaxed: as in close().
    if (!is_open_and_ends(life.load(std::memory_order_relaxed), generation)) return 0;
    // A driver that watches for another driver, which forwards to it, asks for everything.
    const bool for_all = !drivers.has(by, watcher_set::watches);
    unsigned events = 0;
    for (const wait_node& n : waiting[0]) {
        if (!for_all && !is_for(n, by)) continue;
        events |= POLLPRI;
        const auto& node = static_cast<const io_wait_node&>(n);
        if (!node.only_urgent) events |= POLLIN;
        if (node.for_an_end) events |= poll_far_end;
    }
    if (for_all ? !waiting[1].empty() : has_one_for(waiting[1], by)) events |= POLLOUT;
    return static_cast<short>(events);
}

bool io_entry::is_leaving(std::uint32_t generation) const noexcept {
    // Relaxed: a driver that has calls of a later generation has entered that, and sees it here.
    const std::uint64_t now = life.load(std::memory_order_relaxed);
    return static_cast<std::uint32_t>(generation_of(now)) == generation && (now & owed) != 0;
}

}  // namespace weft::detail
