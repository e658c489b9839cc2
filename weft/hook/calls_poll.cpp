// poll, select and epoll_wait, and their variants: the system is queried, without waiting. If
// nothing is ready, the fiber waits for whichever of the descriptors is notified first, and queries
// again. What is reported, and in what order, is therefore the system's.

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/fiber/detail/fiber_core.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/masked_poll.hpp"
#include "weft/hook/detail/proc_field.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/several.hpp"
#include "weft/wait/flow.hpp"

namespace weft::hook::in_fiber {
namespace {

// A list of the awaited events, in memory that need not be requested from the system, and not on
// the stack, which may be a shared one.
class wanted_list {
public:
    explicit wanted_list(std::size_t most) noexcept
        : most_(most), all_(static_cast<wanted*>(detail::block_cache::try_acquire(bytes()))) {}
    wanted_list(const wanted_list&) = delete;
    wanted_list& operator=(const wanted_list&) = delete;
    ~wanted_list() {
        if (all_ != nullptr) detail::block_cache::release(all_, bytes());
    }

    explicit operator bool() const noexcept { return all_ != nullptr; }
    void push_back(const wanted& w) noexcept { all_[count_++] = w; }
    std::span<const wanted> all() const noexcept { return {all_, count_}; }

private:
    std::size_t bytes() const noexcept { return std::max<std::size_t>(most_, 1) * sizeof(wanted); }

    const std::size_t most_;
    std::size_t count_ = 0;
    wanted* const all_;
};

// A query that finds nothing lets other fibers run now and then, for programs that only ever query.
// It also does so if it is the first since the fiber was woken: the fibers that were woken with it
// then come as far as it has, and what they have to send goes out together. A peer is thus woken
// once for all of them, and that wake is the largest cost of a small request. Not while the fiber
// holds a mutex of pthreads, which the fibers that run then may need.
class giving_way {
public:
    // Out of line: a fiber may be on another thread after a wait.
    WEFT_NOINLINE static void after_wake() noexcept { woken = fiber_core::current(); }
    WEFT_NOINLINE static bool is_due() noexcept {
        constexpr unsigned often = 32;
        const fiber_core* const f = fiber_core::current();
        const bool first = std::exchange(woken, nullptr) == f;
        return (++asked % often == 0 || first) && f->foreign_locks == 0;
    }

private:
    static constinit thread_local const fiber_core* woken;  // compared, never dereferenced
    static constinit thread_local unsigned asked;
};
constinit thread_local const fiber_core* giving_way::woken = nullptr;
constinit thread_local unsigned giving_way::asked = 0;

int fails_with(int why) noexcept {
    errno = why;
    return -1;
}

// For a timeout of zero: query() does not wait. Returns the count of ready descriptors, 0, or -1.
template <class Query>
int ask(Query query) {
    const int n = query();
    if (n == 0 && giving_way::is_due()) let_others_run();
    return n;
}
constexpr time_point at_once = time_point::min();

// The rest of a timeout in the system's form: null is no timeout.
class rest_of_timeout {
public:
    explicit rest_of_timeout(time_point deadline) noexcept : is_one_(deadline != never) {
        const duration rest = std::max(time_left(now(), deadline), duration::zero());
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(rest);
        if (is_one_) rest_ = {seconds.count(), (rest - seconds).count()};
    }
    const timespec* get() const noexcept { return is_one_ ? &rest_ : nullptr; }

private:
    const bool is_one_;
    timespec rest_{};
};

// really_wait(what is left of the timeout) is the original, for a child that shares its parent's
// memory.
template <class Query, class Wait>
int wait_for_one(std::span<const wanted> of, time_point deadline, Query query, Wait really_wait) {
    several all(of);
    if (!all) return fails_with(ENOMEM);
    const int before = errno;
    // Around all the waits: a handler that runs between two of them also belongs to the call.
    interruptible_from_first_wait around;
    for (bool first = true;; first = false) {
        all.look();
        if (const int n = query(); n != 0) return n;
        if (first && !is_own_process()) return really_wait(rest_of_timeout(deadline).get());
        const interruptible& here = around.before_wait(ended_by::any_handler);
        const int why = all.until_one_is_ready(deadline, here);
        if (why > 0) return fails_with(why);
        if (why == 0) {
            giving_way::after_wake();
            continue;
        }
        const int n = query();
        if (n == 0) errno = before;
        return n;
    }
}

// The deadline of a timeout; the earliest time point means no wait at all.
time_point deadline_of(int timeout_ms) noexcept {
    if (timeout_ms < 0) return never;
    if (timeout_ms == 0) return at_once;
    return after(now(), std::chrono::milliseconds(timeout_ms));
}
time_point deadline_of(duration timeout) noexcept {
    return timeout == duration::zero() ? at_once : after(now(), timeout);
}
time_point deadline_of(const timespec* timeout) noexcept {
    if (timeout == nullptr) return never;
    return deadline_of(
        hook::duration_of(timeout->tv_sec, std::chrono::nanoseconds(timeout->tv_nsec)));
}

bool is_bad_timeout(const timespec* t) noexcept {
    return t != nullptr && (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec > 999'999'999);
}

// The system reads only the lower half.
nfds_t as_the_system(nfds_t count) noexcept { return static_cast<unsigned>(count); }

// Whether the system refuses the list unread: more entries than the process may have open fds. If
// that limit is lower than the one here, the query itself is refused.
bool is_bad_list(const pollfd* all, nfds_t count) noexcept {
    constexpr nfds_t usual = 1024;
    if (count <= usual) return all == nullptr && count != 0;
    ::rlimit open{};
    return all == nullptr || ::getrlimit(RLIMIT_NOFILE, &open) != 0 || count > open.rlim_cur;
}

int poll_until(pollfd* all, nfds_t count, time_point deadline) {
    const auto query = [=] { return real::poll(all, count, 0); };
    if (deadline == at_once) return ask(query);
    wanted_list of(count);
    if (!of) return fails_with(ENOMEM);
    for (const pollfd& p : std::span(all, count)) {
        if (p.fd < 0) continue;
        const bool reads = (p.events & (POLLIN | POLLRDNORM)) != 0;
        const bool writes = (p.events & (POLLOUT | POLLWRNORM)) != 0;
        // An end has an event of its own. Bands have none: bytes that are there do not answer a
        // query for bands alone, and belong to a reader. A wait for the reader's event would take
        // the event from a call that waits.
        const bool ended = !reads && (p.events & POLLRDHUP) != 0;
        const bool is_asked =
            (!reads && (p.events & POLLRDBAND) != 0) || (!writes && (p.events & POLLWRBAND) != 0);
        // Errors and hang-ups are reported to all, and to those that asked for nothing.
        const bool urgent = (p.events & POLLPRI) != 0 || !(reads || writes);
        of.push_back({p.fd, reads, writes, urgent, ended, is_asked});
    }
    return wait_for_one(of.all(), deadline, query, [=](const timespec* timeout) {
        return real::ppoll(all, count, timeout, nullptr);
    });
}

// The three sets of a select(), as they were given; of any size, as for the system, which reads
// nothing beyond its own table of open descriptors.
class fd_sets {
public:
    fd_sets(int count, fd_set* r, fd_set* w, fd_set* u) noexcept
        : count_(as_the_system_sees(count)),
          bytes_((static_cast<std::size_t>(count_) + 63) / 64 * 8),
          given_(count_ <= usual
                     ? few_
                     : static_cast<unsigned char*>(detail::block_cache::try_acquire(all()))),
          at_{bytes_of(r), bytes_of(w), bytes_of(u)} {
        if (given_ == nullptr) return;
        for (int i = 0; i < 3; ++i)
            if (at_[i] != nullptr) std::memcpy(given(i), at_[i], bytes_);
    }
    fd_sets(const fd_sets&) = delete;
    fd_sets& operator=(const fd_sets&) = delete;
    ~fd_sets() {
        if (given_ != nullptr && given_ != few_) detail::block_cache::release(given_, all());
    }

    explicit operator bool() const noexcept { return given_ != nullptr; }
    int query() noexcept {
        give();
        timeval none{};
        return real::select(count_, set(0), set(1), set(2), &none);
    }
    int query_with(const sigset_t& mask) noexcept {
        give();
        const timespec none{};
        const own_handlers for_this_call;
        return real::pselect(count_, set(0), set(1), set(2), &none, &mask);
    }
    int really_wait(const timespec* timeout) noexcept {
        give();
        return real::pselect(count_, set(0), set(1), set(2), timeout, nullptr);
    }
    int wait_with(const sigset_t& mask, time_point deadline) {
        give();
        return masked_select(count_, at_, deadline, mask);
    }
    // Sets the caller's sets back to what was given, as a failed call does.
    void give() noexcept {
        for (int i = 0; i < 3; ++i)
            if (at_[i] != nullptr) std::memcpy(at_[i], given(i), bytes_);
    }
    std::size_t listed() const noexcept {
        std::size_t n = 0;
        for_each([&](const wanted&) { ++n; });
        return n;
    }
    void list(wanted_list& into) const noexcept {
        for_each([&](const wanted& w) { into.push_back(w); });
    }

private:
    static constexpr int usual = FD_SETSIZE;

    // Sets may be smaller than `count` says, which is often the limit of open fds: the system reads
    // as many fds as its table has entries. If /proc does not report that, the table is taken to
    // have an entry for each fd up to the limit.
    static int as_the_system_sees(int count) noexcept {
        if (count <= usual) return count;
        std::uint64_t places = 0;
        ::rlimit open{};
        if (!ask_proc("/proc/thread-self/status", "FDSize:", 10, places) &&
            ::getrlimit(RLIMIT_NOFILE, &open) == 0)
            places = std::max<std::uint64_t>(open.rlim_cur, usual);
        return static_cast<int>(std::min<std::uint64_t>(places, static_cast<unsigned>(count)));
    }
    static unsigned char* bytes_of(fd_set* s) noexcept {
        return reinterpret_cast<unsigned char*>(s);
    }
    std::size_t all() const noexcept { return 3 * bytes_; }
    unsigned char* given(int i) const noexcept {
        return given_ + static_cast<std::size_t>(i) * bytes_;
    }
    fd_set* set(int i) const noexcept { return reinterpret_cast<fd_set*>(at_[i]); }

    // Eight descriptors of one set.
    unsigned eight(int i, std::size_t at) const noexcept {
        return at_[i] != nullptr ? given(i)[at] : 0u;
    }
    template <class F>
    void for_each(F f) const noexcept {
        for (std::size_t at = 0; at < bytes_; ++at) {
            const unsigned r = eight(0, at);
            const unsigned w = eight(1, at);
            const unsigned u = eight(2, at);
            if ((r | w | u) == 0) continue;
            for (unsigned bit = 0; bit < 8; ++bit) {
                const int fd = static_cast<int>(at * 8 + bit);
                const auto has = [bit](unsigned set) { return (set >> bit & 1u) != 0; };
                if (fd < count_ && has(r | w | u)) f(wanted{fd, has(r), has(w), has(u)});
            }
        }
    }

    const int count_;
    const std::size_t bytes_;
    unsigned char few_[3 * usual / 8];
    unsigned char* const given_;
    unsigned char* const at_[3];
};

int select_until(int count, fd_set* r, fd_set* w, fd_set* u, time_point deadline) {
    fd_sets sets(count, r, w, u);
    if (!sets) return fails_with(ENOMEM);
    const auto query = [&] { return sets.query(); };
    int n;
    if (deadline == at_once) {
        n = ask(query);
    } else {
        wanted_list of(sets.listed());
        if (!of) return fails_with(ENOMEM);
        sets.list(of);
        n = wait_for_one(of.all(), deadline, query,
                         [&](const timespec* timeout) { return sets.really_wait(timeout); });
    }
    if (n < 0) sets.give();
    return n;
}

int epoll_until(int set, epoll_event* events, int most, time_point deadline) {
    const auto query = [=] { return real::epoll_wait(set, events, most, 0); };
    if (deadline == at_once) return ask(query);
    const wanted one = {set, true, false};
    return wait_for_one(std::span(&one, 1), deadline, query, [=](const timespec* timeout) {
        // In whole milliseconds, since there may be no call with finer ones; never too early.
        constexpr std::int64_t longest = std::numeric_limits<int>::max();
        const auto ms = timeout == nullptr
                            ? std::int64_t{-1}
                            : std::min<std::int64_t>(timeout->tv_sec, longest / 1000) * 1000 +
                                  (timeout->tv_nsec + 999'999) / 1'000'000;
        return real::epoll_wait(set, events, most, static_cast<int>(std::min(ms, longest)));
    });
}

// An event that one waiter takes is not there for another waiter, which waits on.
int epoll_with(int set, epoll_event* events, int most, time_point deadline, const sigset_t& mask) {
    std::optional<interruptible> around;
    for (;;) {
        const int n = real::epoll_wait(set, events, most, 0);
        if (n != 0 || deadline == at_once) return n;
        pollfd one = {set, POLLIN, 0};
        if (!around) around.emplace(ended_by::any_handler, &mask);
        const int ready = masked_poll(&one, 1, deadline, mask, *around);
        if (ready < 0) return -1;
        if (ready == 0) return real::epoll_wait(set, events, most, 0);
    }
}

}  // namespace

int poll(pollfd* all, nfds_t count, int timeout_ms) {
    count = as_the_system(count);
    if (is_bad_list(all, count)) return real::poll(all, count, timeout_ms);
    return poll_until(all, count, deadline_of(timeout_ms));
}

int __poll_chk(pollfd* all, nfds_t count, int timeout_ms, size_t room) {
    if (room / sizeof *all < count) return real::__poll_chk(all, count, timeout_ms, room);
    return in_fiber::poll(all, count, timeout_ms);
}

int ppoll(pollfd* all, nfds_t count, const timespec* timeout, const sigset_t* mask) {
    count = as_the_system(count);
    if (is_bad_list(all, count) || is_bad_timeout(timeout))
        return real::ppoll(all, count, timeout, mask);
    if (mask != nullptr) return masked_poll(all, count, deadline_of(timeout), *mask);
    return poll_until(all, count, deadline_of(timeout));
}

int __ppoll_chk(pollfd* all, nfds_t count, const timespec* timeout, const sigset_t* mask,
                size_t room) {
    if (room / sizeof *all < count) return real::__ppoll_chk(all, count, timeout, mask, room);
    return in_fiber::ppoll(all, count, timeout, mask);
}

int select(int count, fd_set* readable, fd_set* writable, fd_set* urgent, timeval* timeout) {
    if (count < 0 || (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
        return real::select(count, readable, writable, urgent, timeout);
    if (timeout == nullptr) return select_until(count, readable, writable, urgent, never);
    const time_point deadline = deadline_of(
        hook::duration_of(timeout->tv_sec, saturated(std::chrono::microseconds(timeout->tv_usec))));
    const int n = select_until(count, readable, writable, urgent, deadline);
    // The rest of the timeout, as Linux reports it.
    const auto left = std::chrono::floor<std::chrono::microseconds>(
        deadline == at_once ? duration::zero() : std::max(deadline - now(), duration::zero()));
    timeout->tv_sec = left.count() / 1'000'000;
    timeout->tv_usec = left.count() % 1'000'000;
    return n;
}

int pselect(int count, fd_set* readable, fd_set* writable, fd_set* urgent, const timespec* timeout,
            const sigset_t* mask) {
    if (count < 0 || is_bad_timeout(timeout))
        return real::pselect(count, readable, writable, urgent, timeout, mask);
    const time_point deadline = deadline_of(timeout);
    if (mask == nullptr) return select_until(count, readable, writable, urgent, deadline);
    fd_sets sets(count, readable, writable, urgent);
    if (!sets) return fails_with(ENOMEM);
    int n = sets.query_with(*mask);
    if (n == 0 && deadline != at_once) n = sets.wait_with(*mask, deadline);
    if (n < 0) sets.give();
    return n;
}

int epoll_wait(int set, epoll_event* events, int most, int timeout_ms) {
    return epoll_until(set, events, most, deadline_of(timeout_ms));
}

int epoll_pwait(int set, epoll_event* events, int most, int timeout_ms, const sigset_t* mask) {
    if (mask == nullptr) return in_fiber::epoll_wait(set, events, most, timeout_ms);
    return epoll_with(set, events, most, deadline_of(timeout_ms), *mask);
}

int epoll_pwait2(int set, epoll_event* events, int most, const timespec* timeout,
                 const sigset_t* mask) {
    if (is_bad_timeout(timeout)) return real::epoll_pwait2(set, events, most, timeout, mask);
    const time_point deadline = deadline_of(timeout);
    if (mask == nullptr) return epoll_until(set, events, most, deadline);
    return epoll_with(set, events, most, deadline, *mask);
}

}  // namespace weft::hook::in_fiber
