#include "weft/io/detail/io_operation.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "weft/base/errc.hpp"
#include "weft/io/detail/prefetched_accepts.hpp"
#include "weft/io/detail/reserve_fd.hpp"

namespace weft::detail {

io_operation::io_operation(io_operation&& other) noexcept
    : enough_(other.enough_),
      what_(other.what_),
      done_(other.done_),
      whole_(other.whole_),
      has_timeout_(other.has_timeout_),
      has_deadline_(other.has_deadline_),
      has_turn_(std::exchange(other.has_turn_, false)),
      request_(other.request_),
      reserve_(other.reserve_),
      deadline_(other.deadline_),
      timeout_(other.timeout_) {}

// An error, the end, or a count that `enough_` handles.
bool io_operation::progress_rarely(std::int64_t n) noexcept {
    if (n < 0) {
        if (passes_over(static_cast<int>(-n))) return false;
        error_ = static_cast<int>(-n);
        return through_ = true;
    }
    const auto count = static_cast<std::size_t>(n);
    done_ += count;
    return through_ = count == 0 || enough_(*this, count);
}

void io_operation::prolong(duration by) noexcept {
    if (!has_deadline_) return;
    deadline_ = after(deadline_, by);
    if (has_timeout_) deadline_ = std::min(deadline_, after(now(), timeout_));
    moves_ = true;
}

bool io_operation::has_moved_on() const noexcept { return moves_ && now() < deadline_; }

// Makes the call while the entry is ready. True: there is no more to do.
bool io_operation::attempt() noexcept {
    do {
        // In the loop, so that no compiler makes two frames of it.
        const std::int64_t n = request_.of ? request_.try_now() : -EBADF;
        if (n == -EAGAIN) return false;
        if (n == io_request::was_closed) return found_closed();
        if (progress(n)) return true;
    } while (!has_pause_);
    return false;
}

// True: it waits, in a queue or only for the time. False: there is no more to do.
bool io_operation::enlist(io_driver* here) noexcept {
    io_wait_node* const also = request_.also_reads ? request_.second : nullptr;
    if (also != nullptr) also->owner = node_.owner;
    node_.only_urgent = request_.awaits() == io_entry::urgent;
    while (!has_pause_) {
        const int r = detail::enlist(request_.of, node_, request_.awaits(), here, also);
        if (r == io_entry::stands) return true;
        if (r != io_entry::look_again) return !progress(-r);
        if (attempt()) return false;
    }
    return true;
}

// A single accept is not submitted to a ring: for a connection the system wakes only one such
// request, and if that one is being cancelled, no waiter accepts the connection, here or in another
// process. By readiness each waiter is notified.
bool io_operation::may_accept_ahead(io_driver& d) const noexcept {
    return request_.ahead != nullptr && request_.ahead->serve(d);
}

void io_operation::begin_timeout() noexcept {
    if (has_timeout_) set_deadline(after(now(), timeout_));
}

bool io_operation::start(waiter& w) noexcept {
    begin_timeout();
    node_.owner = &w;
    w.mark_external();
    io_driver* const here = io_driver_here();
    if (here != nullptr && submits_to(*here)) {
        w.enlist(what_, request_.of.thing(), this, cancel, interrupt);
        return submit(*here);
    }
    w.enlist(what_, request_.of.thing(), this, cancel);
    return enlist(here);
}

// True: the driver has it.
bool io_operation::submit(io_driver& d) noexcept {
    if (!request_.of) return !progress(-EBADF);
    io_entry& e = request_.of.entry();
    if (!e.enter(request_.of.generation())) return !found_closed();
    if (!e.be_served_by(d)) {
        e.leave();
        return !progress(-ENOMEM);
    }
    request_.under_way = request_.given = true;
    request_.driver = &d;
    request_.owner = node_.owner;
    request_.result = -ECANCELED;
    d.submit(request_);
    return true;
}

bool io_operation::again(waiter& w) noexcept {
    // The end of a pause is not the end of the wait, nor is a deadline that was moved.
    const bool paused = has_pause_;
    has_pause_ = false;
    // If a driver had the call at first and no longer has it, the operation's own deadline wakes
    // it.
    const bool late = w.status() == wait_status::timed_out || (!request_.given && w.is_late());
    if (paused ? w.reason() != stop_reason::none || deadline() <= now() : late && !has_moved_on())
        return true;
    if (!request_.given ? attempt() : !paused && completed(w)) return true;
    if (!w.rearm(deadline(), reports_stop)) return true;
    io_driver* const here = io_driver_here();  // another one, if the flow has migrated
    request_.given = here != nullptr && submits_to(*here);
    if (request_.given) w.interrupt_by(interrupt);  // it may have begun in a line
    if (has_pause_) return false;
    if (request_.given ? submit(*here) : enlist(here))  // a pause may have begun within it
        return has_pause_ && !w.rearm(deadline(), reports_stop);
    static_cast<void>(w.claim());  // rearm() has made it pending, and no other thread sees it
    return true;
}

// The driver has given the request back. True: there is no more to do.
bool io_operation::completed(const waiter& w) noexcept {
    std::int64_t n = request_.result;
    if (n == -ECANCELED && w.reason() != stop_reason::none) return true;
    if (n == -ECANCELED && w.is_late()) return !has_moved_on();
    bool polled = std::exchange(request_.poll_first, false);
    if (n <= 0 && !request_.of.is_open()) return found_closed();
    // The system has no buffer left to choose, or cannot choose.
    if (request_.borrows && (n == -ENOBUFS || (polled && n >= 0))) {
        n = request_.try_anyway();
        if (n == io_request::was_closed) return found_closed();
        polled = false;
    }
    if (n == -EAGAIN) {
        request_.poll_first = true;  // the fd is a nonblocking one
    } else if (n == -EINTR || n == -ECANCELED) {
        // A close of another fd of the same file has ended it, which does not concern this one.
    } else if (!(polled && n >= 0) && progress(n)) {
        return true;
    }
    return w.is_late() && !has_moved_on();
}

// For an error of one connection and not of the listener, or a condition without an event. True:
// try again, at once or after a pause.
bool io_operation::passes_over(int error) noexcept {
    if (error == io_request::queue_is_full) {
        // As a thread that may block: until there is room, or the time is over.
        pause_until(after(now(), std::chrono::milliseconds(1u << pauses_)));
        if (pauses_ != 5) ++pauses_;
        return true;
    }
    if (request_.what != io_request::accept) return false;
    switch (error) {
        case ECONNABORTED:
        case EPROTO:
        case ENETDOWN:
        case ENOPROTOOPT:
        case EHOSTDOWN:
        case EHOSTUNREACH:
        case EOPNOTSUPP:
        case ENETUNREACH:
            return true;
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            pause_until(after(now(), reserve_->refuse(request_.of)));
            return true;
        default:
            return false;
    }
}

void io_operation::cancel(waiter& w) noexcept {
    auto& self = w.operation<io_operation>();
    if (self.request_.given) {
        if (self.request_.under_way) self.request_.driver->cancel_now(self.request_);
        return;
    }
    io_entry& e = self.request_.of.entry();
    e.cancel(self.node_, self.request_.reads);
    if (self.request_.also_reads) e.cancel(*self.request_.second, true);
}

void io_operation::interrupt(waiter& w, stop_reason) noexcept {
    auto& self = w.operation<io_operation>();
    if (self.request_.under_way) {
        self.request_.driver->cancel(self.request_);
    } else if (w.claim()) {  // from a pause
        cancel(w);
        w.wake();
    }
}

// Why the outcome is not what was asked for.
std::error_code io_operation::error_of(const waiter* w, wait_status how) const noexcept {
    if (through_)
        return error_ == was_closed ? make_error_code(errc::closed)
                                    : std::error_code(error_, std::system_category());
    // A timer may be of a pause, or of a deadline that has moved on.
    const bool late = w != nullptr && w->is_late() && has_deadline_ && deadline_ <= now();
    if (how == wait_status::timed_out || late) return std::make_error_code(std::errc::timed_out);
    return std::make_error_code(std::errc::operation_canceled);
}

}  // namespace weft::detail
