// io_entry: the protocol of one descriptor: when a call may be made on its fd, when a call is worth
// making, which waiters wait for it, and when the fd goes back to the system.
//
// Design: what is checked before each call is in two words, each with a count that never repeats.
// `life` holds the generation of the fd. A caller is a user from before its call until after it, in
// the generation that it has asked for; the last user of a closed generation gives the fd back.
// `ready` holds what is worth a call: an event sets a flag, and a call that found nothing clears
// it, unless an event has come since the call began.
//
//           63        24 23       4 3      0             63               8 7      0
//      life +-----------+----------+--------+      ready  +-----------------+--------+
//           | generation|  users   | flags  |             | events so far   | flags  |
//           +-----------+----------+--------+             +-----------------+--------+
//
//      closed --- open() ---> open --- close() ---> closed, owed --- the last user ---> closed
//                              |                                      (gives the fd back)
//                              +-- end(): the fd is the program's own, and stays open --> closed
//
//      a call:   enter ... n = f(fd) ... EAGAIN: spend(what was seen before) ... leave
//      a wait:   enlist, under the lock: is a flag set? then call again, or else join the queue
//      an event: set the flags; then, under the lock, claim the waiters; then wake them
//
// If several drivers watch an entry, the system notifies each of them of each event. A driver wakes
// the waiters that it watches for; the drivers of the others wake those, so no loop pays for
// another. A driver without waiters of its own wakes all, because their own loops may be busy.
//
// A TCP socket reports room to write only after a write found none. Other sockets report it
// whenever the far end has taken something, which would wake a loop for each reply that it has
// sent. So a driver that can watch for the two separately watches for room from the first wait for
// room on.
//
// Readiness is a hint: a flag that is set too often costs one call. A flag that is missing would
// lose a wake, so only a call that found nothing clears one: by EAGAIN, or by a short transfer
// under the rule below.
//
// The rule `short_is_all`: a read or write of a TCP socket that moved less than was asked for has
// taken all there was, and the next byte, or room, is an event. For a receive stops early only at
// the end of what has come, at urgent data, at an end or at an error; the event of the last three
// sets `exceptional`, and then only EAGAIN counts. The rule is proven for no other kind: a terminal
// and a pipe of packets stop at each line or packet, a local socket stops where descriptors were
// passed, and TLS in the kernel at each record.
//
// An fd that is the program's own (wait_fd, fd_watch) is `borrowed`, by several watches at once;
// the last of them ends the generation, and the fd stays open.
//
// Invariants:
// E1  life goes from closed to open and back under the lock alone
// E2  a waiter is queued under the lock after it has seen its flags clear and the generation open;
//     an event sets the flag, and close() ends the generation, before taking the lock or under it:
//     so one of them sees the other
// E3  users are counted only in a generation that is open; calls are made by users alone; the fd is
//     given back by the user that takes `owed` away when there is no other
// E4  the count of `ready` grows with each event and each open(): a flag that was seen before
//     either is not cleared after it
// E5  a driver that watches the generation, or was given calls on it, is stored in `drivers`; all
//     of them are notified when the generation ends, before the fd is given back
// E6  no waiter and no driver is woken, and no result is delivered, under the lock: a wake may be
//     refused, and tried again for seconds. A driver that is to be woken is held until then
// E7  the driver that a waiter names watches the generation while the waiter is queued, and so is
//     notified of whatever comes after the waiter has seen its flags clear
//
// Model: test/model/io_entry_test.cpp
#pragma once

#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/base/platform.hpp"
#include "weft/io/detail/watcher_set.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

class io_driver;

namespace detail {

// A waiter's node in a queue of an entry.
struct io_wait_node : wait_node {
    const io_driver* by = nullptr;  // the watching driver; under the lock of the entry. E7
    bool only_urgent = false;       // among the readers: it does not wait for ordinary data
    bool for_an_end = false;        // it waits for an end, among others
};

struct io_entry {
    // The flags of `life`.
    static constexpr std::uint64_t closed = 1;
    static constexpr std::uint64_t owed = 2;      // the last user gives the fd back
    static constexpr std::uint64_t borrowed = 4;  // the fd is the program's own
    static constexpr std::uint64_t user = 1u << 4;
    static constexpr std::uint64_t crowd = 1u << 23;  // at this many users no more come in
    static constexpr std::uint64_t users = 2 * crowd - user;
    static constexpr unsigned generation_shift = 24;

    // The flags of `ready`.
    static constexpr std::uint64_t readable = 1;
    static constexpr std::uint64_t writable = 2;
    static constexpr std::uint64_t urgent = 4;
    static constexpr std::uint64_t exceptional = 8;    // urgent data, an end or an error has come
    static constexpr std::uint64_t short_is_all = 16;  // the fd type of this generation
    // O_NONBLOCK was set for a reader's call, or a writer's; the last of them clears it. Under the
    // lock.
    static constexpr std::uint64_t unblocked_to_read = 32;
    static constexpr std::uint64_t unblocked_to_write = 64;
    static constexpr std::uint64_t far_end =
        128;  // the far end sends nothing any more, or an error
    static constexpr std::uint64_t event = 1u << 8;

    atomic<std::uint64_t> life{closed};
    atomic<std::uint64_t> ready{0};
    int number = -1;              // its index in the table
    spin_lock lock;               // guards what follows, and E1
    std::uint16_t borrowers = 0;  // while it is borrowed
    wait_list waiting[2];         // for reading, urgent data or an end; for writing
    watcher_set drivers;

    static std::uint64_t generation_of(std::uint64_t l) noexcept { return l >> generation_shift; }

    // A check without being a user: open in this generation.
    bool is_open(std::uint64_t generation) const noexcept {
        // Acquire: pairs with close().
        return is_open_in(life.load(std::memory_order_acquire), generation);
    }
    // A hint: open, and not ready for any of `flags`.
    bool is_unready(std::uint64_t generation, std::uint64_t flags) const noexcept {
        // Relaxed: a caller that relies on it checks again under the lock. E2
        return (ready.load(std::memory_order_relaxed) & flags) == 0 &&
               is_open_in(life.load(std::memory_order_relaxed), generation);
    }
    // A hint: there are so many users that a long operation should not be one more. Beside them
    // there is room for one call of each thread.
    bool is_crowded() const noexcept {
        return (life.load(std::memory_order_relaxed) & users) >= crowd / 2;  // a hint
    }

    // Becomes a user. False: it is closed, or of another generation.
    [[nodiscard]] bool enter(std::uint64_t generation) noexcept {
        // Acquire: pairs with open().
        const std::uint64_t before = life.fetch_add(user, std::memory_order_acquire);
        constexpr std::uint64_t counted = (crowd - user) | borrowed;
        if (((before ^ generation << generation_shift) & ~counted) == 0) [[likely]]
            return true;
        return enter_rarely(generation);
    }
    // Is no longer a user.
    void leave() noexcept {
        // Release: pairs with the acquire of last_out(), which closes.
        const std::uint64_t before = life.fetch_sub(user, std::memory_order_release);
        if ((before & (owed | users)) == (owed | user)) [[unlikely]]
            last_out(before - user);
    }

    // Called by a user before its call: what is known by then.
    std::uint64_t look() const noexcept {
        // Acquire: pairs with an event, whose cause the call finds.
        return ready.load(std::memory_order_acquire);
    }
    // Called by a user after a call that found nothing for `flags`. E4
    void spend(std::uint64_t seen, std::uint64_t flags) noexcept {
        std::uint64_t now = seen;
        // Relaxed: only this word is concerned.
        while (!ready.compare_exchange_weak(now, now & ~flags, std::memory_order_relaxed))
            if ((now ^ seen) >= event) return;
    }

    // Makes a call for `flags`, which must not wait, if the entry is ready for them as far as is
    // known. Returns what f() returned: at least zero, or -errno. `bytes`: what the call asks for.
    // -EAGAIN: it is not ready.
    static constexpr std::int64_t was_closed = INT64_MIN;
    template <class F>
    WEFT_ALWAYS_INLINE std::int64_t try_call(std::uint64_t generation, std::uint64_t flags,
                                             const std::size_t& bytes, F&& f) noexcept {
        for (;;) {
            if (is_unready(generation, flags)) return -EAGAIN;
            if (!enter(generation)) return was_closed;
            const std::uint64_t seen = look();
            const std::int64_t n = f();
            constexpr std::uint64_t rule = short_is_all | exceptional;
            const bool all =
                n > 0 && static_cast<std::size_t>(n) < bytes && (seen & rule) == short_is_all;
            if (all || n == -EAGAIN) spend(seen, flags);
            leave();
            if (n != -EAGAIN && n != -EINTR) return n;  // else an event may have come meanwhile
        }
    }

    // Opens it, whether it was closed or not, and drops the state of the former generation. Returns
    // the new generation.
    std::uint64_t open(std::uint64_t kind) noexcept;
    // Ends every wait for it; no call begins any more, and the fd is given back after the last one.
    // False: it is closed, or of another generation. Any thread.
    bool close(std::uint64_t generation) noexcept;
    // The same, but the fd stays open and belongs to the program.
    bool end(std::uint64_t generation) noexcept;
    // For an fd of the program's own: opens it if it is closed, and borrows it once more if it is
    // borrowed. Returns the generation; `counts`: a release_borrowed() is owed. Zero with `counts`:
    // too many borrow it. Zero without: it is weft's, closed, and its fd is not given back yet.
    std::uint64_t borrow(bool& counts) noexcept;
    void release_borrowed(std::uint64_t generation) noexcept;

    // Before notify(): prefetches what that will touch of the waiters. A hint.
    void fetch_waiting(std::uint64_t flags) const noexcept;
    // An event has come: sets flags, and wakes the waiters for them. Any thread. Waiters on the
    // calling thread's executor run in the order in which they came. The low bits of the generation
    // are enough, as a superfluous event is harmless. `by`: the driver that the system notified, as
    // it does each driver that watches; null: there is no other notification.
    void notify(std::uint64_t generation, std::uint64_t flags,
                const io_driver* by = nullptr) noexcept;

    // Queues n for `flags`, watched by d. For a waiter for room or bytes, `also` is its node among
    // the readers. Or look_again: it is ready or closed. Or an errno value: why it is not watched.
    static constexpr int stands = 0;
    static constexpr int look_again = -1;
    [[nodiscard]] int enlist(io_wait_node& n, std::uint64_t generation, std::uint64_t flags,
                             io_driver& d, io_wait_node* also = nullptr) noexcept;
    // Removes the node of a waiter that was claimed for it.
    void cancel(wait_node& n, bool reads) noexcept;

    // Called by a user: d is given a call, and is notified when the generation ends. False: no
    // memory.
    [[nodiscard]] bool be_served_by(io_driver& d) noexcept {
        return drivers.is_only(d, watcher_set::serves) || be_served_rarely(d);
    }
    bool is_watched_by(const io_driver& d) noexcept;
    // d is destroyed: the waiters check again.
    void deregister_driver(io_driver& d) noexcept;
    // In this generation d watches it no more, and `instead` does, which may be d again. If that is
    // not possible, the waiters check again. If `instead` says that such a file cannot be watched
    // (EPERM), d refuses it from now on.
    void rewatch(std::uint32_t generation, io_driver& d, io_driver* instead) noexcept;

    // The events of the waiters that `by` watches for, as poll(2) has them. Of another generation:
    // none, not even errors (a negative fd could not express that).
    short wanted(std::uint32_t generation, const io_driver& by) noexcept;

    // Closed by weft, and it still has users: its fd is not another file's yet.
    bool is_leaving(std::uint32_t generation) const noexcept;

private:
    static bool is_open_in(std::uint64_t l, std::uint64_t generation) noexcept {
        return generation_of(l) == generation && (l & closed) == 0;
    }
    static bool is_open_and_ends(std::uint64_t l, std::uint32_t last_bits) noexcept {
        return static_cast<std::uint32_t>(generation_of(l)) == last_bits && (l & closed) == 0;
    }
    bool enter_rarely(std::uint64_t generation) noexcept;
    int enlist_rarely(io_wait_node& n, std::uint64_t generation, bool for_room, io_driver& d,
                      io_wait_node* also) noexcept;
    void last_out(std::uint64_t seen) noexcept;
    bool be_served_rarely(io_driver& d) noexcept;
    // Under the lock.
    // What is to be woken when it is released.
    struct ended {
        wait_list waiters;
        watcher_set drivers;  // each of them held
        void wake_all() noexcept;
    };
    std::uint64_t open_now(std::uint64_t kind, std::uint64_t flags, ended& by) noexcept;
    void end_now(bool stays_open, ended& by) noexcept;
    int be_watched_by(io_driver& d, std::uint32_t generation, bool for_room) noexcept;
};
static_assert(WEFT_MODEL || sizeof(io_entry) <= cache_line_bytes);

// The far end sends nothing any more. Where poll(2) does not report that, a kqueue does, and this
// is a bit of our own.
#ifdef POLLRDHUP
constexpr unsigned poll_far_end = POLLRDHUP;
#else
constexpr unsigned poll_far_end = 0x2000;
#endif

// The flags of the events of poll(2); epoll's events are the same bits.
inline std::uint64_t flags_of_poll(unsigned events) noexcept {
    std::uint64_t flags = 0;
    if ((events & POLLIN) != 0) flags |= io_entry::readable;
    if ((events & POLLOUT) != 0) flags |= io_entry::writable;
    if ((events | POLLIN | POLLOUT) == (POLLIN | POLLOUT)) [[likely]]
        return flags;
    // Urgent data may stop a read.
    if ((events & POLLPRI) != 0)
        flags |= io_entry::readable | io_entry::urgent | io_entry::exceptional;
    if ((events & poll_far_end) != 0)
        flags |= io_entry::readable | io_entry::exceptional | io_entry::far_end;
    // POLLNVAL: closed without weft; the next call reports it.
    if ((events & (POLLHUP | POLLERR | POLLNVAL)) != 0)
        flags |= io_entry::readable | io_entry::writable | io_entry::urgent |
                 io_entry::exceptional | io_entry::far_end;
    return flags;
}

// Returns the fd to the system. Declared here so that a test can observe it.
void give_number_back(int number) noexcept;

}  // namespace detail
}  // namespace weft
