// Message queues and semaphore sets between processes. A queue of POSIX is a descriptor, and is
// waited for as one. For those of System V the system notifies only a thread that waits, so a fiber
// tries again and again, less and less often: a message that is taken therefore always has a fiber
// that is there to receive it.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <span>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/readable.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/turn_budget.hpp"

namespace weft::hook {
namespace {

constexpr timespec long_ago{};

bool is_no_moment(const timespec* t) noexcept {
    return t != nullptr &&
           (!is_readable(t) || t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec > 999'999'999);
}

duration left_until(const timespec& moment) noexcept {
    timespec there{};
    ::clock_gettime(CLOCK_REALTIME, &there);
    const auto of = [](const timespec& t) noexcept {
        return hook::duration_of(t.tv_sec, std::chrono::nanoseconds(t.tv_nsec));
    };
    return of(moment) - of(there);
}
bool has_come(const timespec* moment) noexcept {
    return moment != nullptr && left_until(*moment) <= duration::zero();
}
// A clock that may be set is read again after a while.
time_point next_look(const timespec* moment) noexcept {
    if (moment == nullptr) return never;
    constexpr duration at_most = std::chrono::seconds(10);
    return after(now(), std::min(left_until(*moment), at_most));
}

// attempt(time) is the call with that time instead of the given one: with a time long past the call
// fails with ETIMEDOUT where it would wait, and with EAGAIN where the queue is nonblocking.
template <class Attempt>
auto wait_for_queue(mqd_t queue, bool reads, const timespec* moment, Attempt attempt) {
    pay(price::lock);
    if (is_no_moment(moment) || !is_own_process()) return attempt(moment);
    const int before = errno;
    bool waited = false;
    interruptible_from_first_wait around;
    for (;;) {
        const snapshot seen = look(queue);
        const auto n = attempt(&long_ago);
        if (n >= 0 || errno != ETIMEDOUT) {
            if (n >= 0 && waited) errno = before;
            return n;
        }
        if (has_come(moment)) return n;
        waited = true;
        const interruptible& here = around.before_wait(ended_by::plain_handler);
        const int why = until_ready(queue, seen, reads, next_look(moment), here);
        if (why != 0 && why != timed_out) {
            errno = why;
            return n;
        }
    }
}

// attempt() is a call with IPC_NOWAIT, which fails with `would_wait` where it would wait, or where
// it must not wait any more: still_waits().
template <class Attempt, class StillWaits>
auto ask_again_and_again(int would_wait, time_point deadline, Attempt attempt,
                         StillWaits still_waits) {
    const int before = errno;
    auto pause = std::chrono::microseconds(0);
    interruptible_from_first_wait around;
    for (;;) {
        const auto n = attempt();
        if (n >= 0) {
            errno = before;
            return n;
        }
        // An object that existed at the first attempt, and does not now, was removed.
        if (errno == EINVAL && pause.count() != 0) errno = EIDRM;
        if (errno != would_wait || deadline <= now()) return n;
        if (!still_waits()) return errno = would_wait, n;
        const interruptible& here = around.before_wait(ended_by::any_handler);
        if (pause.count() == 0)
            let_others_run();
        else if (const int why = until(std::min(after(now(), pause), deadline), here); why != 0)
            return errno = why, n;
        pause =
            std::clamp(2 * pause, std::chrono::microseconds(100), std::chrono::microseconds(4000));
    }
}

template <class Attempt>
auto ask_again_and_again(int would_wait, time_point deadline, Attempt attempt) {
    return ask_again_and_again(would_wait, deadline, attempt, [] { return true; });
}

// The operations, as they are for a call that must not wait.
class hasty_operations {
public:
    hasty_operations(const sembuf* of, std::size_t count) noexcept
        : count_(count),
          all_(count <= std::size(few_)
                   ? few_
                   : static_cast<sembuf*>(std::malloc(count * sizeof(sembuf)))) {
        if (all_ == nullptr) return;
        std::copy_n(of, count, all_);
        for (sembuf& o : all()) o.sem_flg = static_cast<short>(o.sem_flg | IPC_NOWAIT);
    }
    hasty_operations(const hasty_operations&) = delete;
    hasty_operations& operator=(const hasty_operations&) = delete;
    ~hasty_operations() {
        if (all_ != few_) std::free(all_);
    }
    explicit operator bool() const noexcept { return all_ != nullptr; }
    std::span<sembuf> all() const noexcept { return {all_, count_}; }

private:
    sembuf few_[8];
    const std::size_t count_;
    sembuf* const all_;
};

// Whether the first of the operations that cannot be done is one that waits. A snapshot: the system
// has no call that reports it.
bool waits(int set, std::span<const sembuf> all) noexcept {
    const auto waits = [](const sembuf& o) noexcept { return (o.sem_flg & IPC_NOWAIT) == 0; };
    if (std::all_of(all.begin(), all.end(), waits)) return true;
    if (std::none_of(all.begin(), all.end(), waits)) return false;
    for (const sembuf& o : all) {
        int value = ::semctl(set, o.sem_num, GETVAL);
        if (value < 0) return true;  // the next attempt reports the reason
        for (const sembuf* before = all.data(); before != &o; ++before)
            if (before->sem_num == o.sem_num) value += before->sem_op;
        const bool cannot = o.sem_op == 0 ? value != 0 : value + o.sem_op < 0;
        if (cannot) return waits(o);
    }
    return true;
}

int operate(int set, sembuf* all, std::size_t count, const timespec* timeout) {
    pay(price::lock);
    constexpr std::size_t more_than_any = 32'000;  // SEMOPM of any system
    if (all == nullptr || count == 0 || count > more_than_any || is_no_moment(timeout) ||
        !is_own_process())
        return real::semtimedop(set, all, count, timeout);
    const time_point deadline =
        timeout == nullptr
            ? never
            : after(now(),
                    hook::duration_of(timeout->tv_sec, std::chrono::nanoseconds(timeout->tv_nsec)));
    const hasty_operations hasty(all, count);
    if (!hasty) return errno = ENOMEM, -1;
    const auto attempt = [&] { return real::semop(set, hasty.all().data(), count); };
    const int before = errno;
    const int n = attempt();
    if (n == 0) errno = before;
    if (n == 0 || errno != EAGAIN || !waits(set, {all, count})) return n;
    errno = before;
    // While it waits for one operation, another may become the one that cannot be done.
    return ask_again_and_again(EAGAIN, deadline, attempt, [=] { return waits(set, {all, count}); });
}

}  // namespace

mqd_t everywhere::mq_open(const char* name, int flags, mode_t mode, mq_attr* attributes) {
    return opened(real::mq_open(name, flags, mode, attributes));
}

mqd_t everywhere::__mq_open_2(const char* name, int flags) {
    return opened(real::__mq_open_2(name, flags));
}

int everywhere::mq_close(mqd_t queue) {
    if (queue >= 0) leave_table(queue);
    return real::mq_close(queue);
}

ssize_t in_fiber::mq_timedreceive(mqd_t queue, char* to, size_t bytes, unsigned* priority,
                                  const timespec* moment) {
    return wait_for_queue(queue, true, moment, [=](const timespec* t) {
        return real::mq_timedreceive(queue, to, bytes, priority, t);
    });
}

ssize_t in_fiber::mq_receive(mqd_t queue, char* to, size_t bytes, unsigned* priority) {
    return in_fiber::mq_timedreceive(queue, to, bytes, priority, nullptr);
}

int in_fiber::mq_timedsend(mqd_t queue, const char* from, size_t bytes, unsigned priority,
                           const timespec* moment) {
    return wait_for_queue(queue, false, moment, [=](const timespec* t) {
        return real::mq_timedsend(queue, from, bytes, priority, t);
    });
}

int in_fiber::mq_send(mqd_t queue, const char* from, size_t bytes, unsigned priority) {
    return in_fiber::mq_timedsend(queue, from, bytes, priority, nullptr);
}

ssize_t in_fiber::msgrcv(int queue, void* to, size_t bytes, long type, int flags) {
    pay(price::lock);
    if ((flags & (IPC_NOWAIT | MSG_COPY)) != 0 || !is_own_process())
        return real::msgrcv(queue, to, bytes, type, flags);
    return ask_again_and_again(
        ENOMSG, never, [=] { return real::msgrcv(queue, to, bytes, type, flags | IPC_NOWAIT); });
}

int in_fiber::msgsnd(int queue, const void* from, size_t bytes, int flags) {
    pay(price::lock);
    if ((flags & IPC_NOWAIT) != 0 || !is_own_process())
        return real::msgsnd(queue, from, bytes, flags);
    return ask_again_and_again(
        EAGAIN, never, [=] { return real::msgsnd(queue, from, bytes, flags | IPC_NOWAIT); });
}

int in_fiber::semop(int set, sembuf* all, size_t count) {
    return operate(set, all, count, nullptr);
}

int in_fiber::semtimedop(int set, sembuf* all, size_t count, const timespec* timeout) {
    return operate(set, all, count, timeout);
}

}  // namespace weft::hook
