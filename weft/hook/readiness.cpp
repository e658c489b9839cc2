#include "weft/hook/detail/readiness.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <new>

#include "weft/base/detail/timespec.hpp"
#include "weft/base/errc.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/fd_table.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/opening.hpp"
#include "weft/hook/detail/pin.hpp"
#include "weft/hook/detail/stops.hpp"
#include "weft/hook/detail/turn_budget.hpp"
#include "weft/io/detail/io_operation.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/shield.hpp"

namespace weft::hook {
namespace {

using weft::detail::io_entry;
using weft::detail::io_request;

// The wait for a descriptor, by the events that its entry is notified of.
class fd_wait final : public weft::detail::io_operation {
public:
    fd_wait(detail::descriptor_ref of, bool reads, time_point deadline) noexcept
        : io_operation(request(of, reads), 1, no_timeout, "a descriptor") {
        set_deadline(deadline);
    }
    int take(const waiter* w, wait_status how) const noexcept {
        const transfer_result t = outcome(w, how);
        if (t) return 0;
        if (how == wait_status::timed_out) return timed_out;
        if (how == wait_status::stopped) return why_stopped(w);
        return t.error() == errc::closed ? EBADF : t.error().value();
    }

private:
    static io_request request(detail::descriptor_ref of, bool reads) noexcept {
        io_request r;
        r.what = io_request::step;
        r.of = of;
        r.reads = reads;
        return r;
    }
};

class moment final {
public:
    static constexpr bool reports_stop = true;

    explicit moment(time_point t) noexcept : at_(t) {}
    bool ready() const noexcept { return false; }
    bool start(waiter& w) noexcept {
        w.enlist("a time point", nullptr, nullptr, [](waiter&) noexcept {});
        if (at_ == never) w.mark_external();  // for a signal
        return true;
    }
    time_point deadline() const noexcept { return at_; }
    int take(const waiter* w, wait_status how) const noexcept {
        return how == wait_status::stopped ? why_stopped(w) : 0;
    }

private:
    time_point at_;
};

// A child that shares its parent's memory waits with its thread.
int really_wait(int fd, bool reads, time_point deadline) noexcept {
    ::pollfd p = {fd, static_cast<short>(reads ? POLLIN : POLLOUT), 0};
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            std::min<duration>(deadline - steady_now(), std::chrono::hours(1)));
        const int n = real::poll(&p, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
        if (n > 0) return 0;
        if (n < 0 && errno != EINTR) return errno;
        if (deadline <= steady_now()) return timed_out;
    }
}
int really_wait(time_point moment, ended_by by) noexcept {
    const kept_errno own;
    const time_point end = after(steady_now(), time_left(now(), moment));
    for (;;) {
        const duration left =
            std::min<duration>(time_left(steady_now(), end), std::chrono::hours(1));
        if (left <= duration::zero()) return 0;
        const timespec t = weft::detail::timespec_of(left);
        // Whether a handler has SA_RESTART cannot be seen here.
        if (real::nanosleep(&t, nullptr) != 0 && by == ended_by::any_handler) return errno;
    }
}

}  // namespace

void let_others_run() {
    const fiber_core* const f = fiber_here();
    // While a wait begins (a callback) there is no turn to give up.
    if (f == nullptr || !f->can_suspend()) return;
    const kept_errno keep;
    if (!is_own_process()) return static_cast<void>(real::sched_yield());
    const shield from_stops;
    this_fiber::yield();
    begin_turn_budget();
}

int until(time_point t) { return until(t, interruptible(ended_by::any_handler)); }

int until(time_point t, const interruptible& around) {
    if (!is_own_process()) return really_wait(t, around.by());
    if (is_ending()) return answer_to_stop(ECANCELED);
    const kept_errno own;
    look_for_pin(*fiber_here(), "a time point");
    const cancelable_wait cancelable(fiber_here());
    if (around.is_over()) return EINTR;
    moment op(t);
    return after_wait(weft::detail::block_for(op, std::source_location::current()));
}

void wait_out(time_point t) {
    const shield from_stops;
    static_cast<void>(until(t));
}

int until_ready(int fd, snapshot seen, bool reads, time_point deadline,
                const interruptible& around) {
    const kept_errno own;
    if (!is_own_process()) return really_wait(fd, reads, deadline);
    if (is_ending()) return answer_to_stop(ECANCELED);
    look_for_pin(*fiber_here(), "a descriptor");
    const cancelable_wait cancelable(fiber_here());
    if (around.is_over()) return EINTR;
    opening at = opening_of(fd);
    if (!at.of) return at.error;
    if (at.replaces) return 0;
    spend(at.of, seen, at.fresh, reads ? io_entry::readable : io_entry::writable);
    const auto wait = [&](time_point end) {
        fd_wait op(at.of, reads, end);
        return weft::detail::block_for(op, std::source_location::current());
    };
    const time_point trusted = at.asked ? never : after(now(), trusted_wait);
    int why = wait(std::min(deadline, trusted));
    if (why == timed_out && trusted < deadline) {
        // A request that came once the first wait had ended found no wait to end.
        leave_if_canceled(*fiber_here());
        const std::uint64_t waited_for = at.of.generation();
        at = asked_opening_of(fd);
        if (!at.of) return at.error;
        if (at.of.generation() != waited_for) return 0;
        why = around.is_over() ? EINTR : wait(deadline);
    }
    switch (why) {
        case EPERM:  // no driver can watch it, or there is no space for it
        case ENOMEM:
        case ENOSPC:
        case EMFILE: {
            const time_point again = after(now(), blind_wait);
            const int slept = until(std::min(again, deadline), around);
            return slept != 0 ? slept : deadline <= again ? timed_out : 0;
        }
        default:
            return after_wait(why);
    }
}

time_point call_deadline(int fd, bool reads) noexcept {
    ::timeval t{};
    ::socklen_t bytes = sizeof t;
    if (real::getsockopt(fd, SOL_SOCKET, reads ? SO_RCVTIMEO : SO_SNDTIMEO, &t, &bytes) != 0)
        return never;
    if (t.tv_sec == 0 && t.tv_usec == 0) return never;
    return after(now(), duration_of(t.tv_sec, std::chrono::microseconds(t.tv_usec)));
}

namespace {

void close_entry(io_entry& e) noexcept {
    const std::uint64_t now = e.life.load(std::memory_order_acquire);  // pairs with open()
    if ((now & io_entry::closed) == 0) end_opening(e, io_entry::generation_of(now));
}

}  // namespace

void leave_table(int fd) noexcept {
    invalidate_sort(fd);
    if (io_entry* const e = weft::detail::find_entry(fd)) close_entry(*e);
}

void leave_table(unsigned first, unsigned last) noexcept {
    struct range {
        unsigned first, last;
    } both = {first, last};
    invalidate_sorts(first, last);
    weft::detail::for_each_entry(
        [](io_entry& e, void* with) {
            const range r = *static_cast<range*>(with);
            const auto number = static_cast<unsigned>(e.number);
            if (r.first <= number && number <= r.last) close_entry(e);
        },
        &both);
}

void leave_closed() noexcept {
    weft::detail::for_each_entry(
        [](io_entry& e, void*) {
            // Relaxed: a hint; leave_table() reads it again.
            const bool in_use = (e.life.load(std::memory_order_relaxed) & io_entry::closed) == 0;
            if (in_use && real::fcntl(e.number, F_GETFD, nullptr) < 0) leave_table(e.number);
        },
        nullptr);
}

void close_own(int fd) noexcept {
    leave_table(fd);
    real::close(fd);
}

void prompt_writers() noexcept {
    if (!process_state::has(process_state::alive) || !is_own_process()) return;
    weft::detail::for_each_entry(
        [](io_entry& e, void*) {
            // Relaxed: notify() checks again.
            const std::uint64_t now = e.life.load(std::memory_order_relaxed);
            if ((now & io_entry::closed) == 0)
                e.notify(io_entry::generation_of(now), io_entry::writable);
        },
        nullptr);
}

int opened(int fd) noexcept {
    if (fd >= 0) leave_table(fd);
    return fd;
}

}  // namespace weft::hook
