#include "weft/io/io_operation.hpp"

#include <cerrno>
#include <mutex>
#include <utility>

#include "weft/base/errc.hpp"
#include "weft/io/accept_ahead.hpp"
#include "weft/io/accept_reserve.hpp"

namespace weft::detail {

io_operation::io_operation(io_operation&& other) noexcept
    : request_(other.request_),
      reserve_(other.reserve_),
      enough_(other.enough_),
      what_(other.what_),
      least_(other.least_),
      deadline_(other.deadline_),
      timeout_(other.timeout_) {}

// An error, the end, or something that is counted by who made the operation.
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
    if (deadline_ == never) return;
    deadline_ = std::min(after(deadline_, by), after(now(), timeout_));
    moves_ = true;
}

bool io_operation::has_moved_on() const noexcept { return moves_ && now() < deadline_; }

// Makes the call while the entry is ready. True: there is no more to do.
bool io_operation::attempt() noexcept {
    if (!request_.of) return progress(-EBADF);
    do {
        const std::int64_t n = request_.try_now();
        if (n == -EAGAIN) return false;
        if (n == io_request::was_closed) return found_closed();
        if (progress(n)) return true;
    } while (pause_until_ == never);
    return false;
}

// D1. True: the waiter stands in the queue. False: there is no more to do.
bool io_operation::enlist(io_driver* driver) noexcept {
    io_entry& e = request_.of.entry();
    if (driver == nullptr) driver = shared_io_driver();
    if (driver == nullptr) return !progress(-EMFILE);
    for (;;) {
        bool elsewhere = false;
        {
            const std::lock_guard held(e.lock);
            if (pause_until_ != never) return true;  // only the time is waited for
            // Relaxed: enter() acquires, before the next call.
            const std::uint64_t now = e.word.load(std::memory_order_relaxed);
            const bool same = io_entry::generation_of(now) == request_.of.generation();
            if (same && (now & (request_.flag() | io_entry::closed)) == 0) {
                if (e.is_watched_by(*driver)) [[likely]] {
                    driver->enlisted();
                } else if (const auto error = e.be_watched_by(*driver, request_.of.generation())) {
                    elsewhere = driver->completes() && error == std::errc::not_supported;
                    if (!elsewhere) return !progress(-error.value());
                }
                if (!elsewhere) {
                    e.waiting[request_.reads ? 0 : 1].push_back(node_);
                    return true;
                }
            }
        }
        if (elsewhere) driver = shared_io_driver();
        if (driver == nullptr) return !progress(-EMFILE);
        if (attempt()) return false;
    }
}

bool io_operation::may_accept_ahead(io_driver& d) const noexcept {
    return request_.ahead == nullptr || request_.ahead->serve(d);
}

void io_operation::begin_timeout() noexcept {
    if (timeout_ != duration::max()) deadline_ = after(now(), timeout_);
}

bool io_operation::start(waiter& w) noexcept {
    begin_timeout();
    node_.owner = request_.owner = &w;
    w.await_outside();
    io_driver* const here = io_driver_here();
    if (here != nullptr && gives_to(*here)) {
        w.enlist(what_, request_.of.thing(), this, withdraw, interrupt);
        return submit(*here);
    }
    w.enlist(what_, request_.of.thing(), this, withdraw);
    return enlist(here);
}

// True: a driver has it.
bool io_operation::submit(io_driver& d) noexcept {
    std::uint64_t seen;
    if (!request_.of) return !progress(-EBADF);
    if (!request_.of.entry().enter(request_.of.generation(), seen)) return !found_closed();
    request_.under_way = true;
    request_.driver = &d;
    d.submit(request_);
    return true;
}

bool io_operation::again(waiter& w) noexcept {
    // The end of a pause is not the end of the wait, nor is a deadline that has moved on.
    const bool paused = std::exchange(pause_until_, never) != never;
    // Its own deadline wakes it where a driver had the call at first, and has it no more.
    const bool late =
        w.status() == wait_status::timed_out || (request_.driver == nullptr && w.is_late());
    if (paused ? w.reason() != stop_reason::none || deadline_ <= now() : late && !has_moved_on())
        return true;
    if (request_.driver == nullptr ? attempt() : !paused && completed(w)) return true;
    if (!w.renew(deadline(), reports_stop)) return true;
    io_driver* const here = io_driver_here();  // another, if the flow has gone elsewhere
    io_driver* const d = request_.driver = here != nullptr && gives_to(*here) ? here : nullptr;
    if (pause_until_ != never) return false;
    if (d != nullptr ? submit(*d) : enlist(here))  // a pause may have begun within it
        return pause_until_ != never && !w.renew(deadline(), reports_stop);
    static_cast<void>(w.claim());  // renew has made it pending, and nobody else sees it
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
        request_.poll_first = true;  // it is one that does not block
    } else if (n != -EINTR && !(polled && n >= 0) && progress(n)) {
        return true;
    }
    return w.is_late() && !has_moved_on();
}

// Something that concerns one connection and not who accepts it. True: try again, at once or after
// a pause.
bool io_operation::passes_over(int error) noexcept {
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
            pause_until_ = after(now(), reserve_->refuse(request_.of.number()));
            return true;
        default:
            return false;
    }
}

void io_operation::withdraw(waiter& w) noexcept {
    auto& self = w.operation<io_operation>();
    if (self.request_.driver != nullptr) {
        if (self.request_.under_way) self.request_.driver->cancel_now(self.request_);
        return;
    }
    const std::lock_guard held(self.request_.of.entry().lock);
    if (self.node_.linked())
        self.request_.of.entry().waiting[self.request_.reads ? 0 : 1].remove(self.node_);
}

void io_operation::interrupt(waiter& w, stop_reason) noexcept {
    auto& self = w.operation<io_operation>();
    if (self.request_.under_way) {
        self.request_.driver->cancel(self.request_);
    } else if (w.claim()) {  // from a pause
        withdraw(w);
        w.wake();
    }
}

// Why it is not what was asked for.
std::error_code io_operation::error_of(const waiter* w, wait_status how) const noexcept {
    if (through_)
        return error_ == was_closed ? make_error_code(errc::closed)
                                    : std::error_code(error_, std::system_category());
    if (how == wait_status::timed_out || (w != nullptr && w->is_late()))
        return std::make_error_code(std::errc::timed_out);
    return std::make_error_code(std::errc::operation_canceled);
}

}  // namespace weft::detail
