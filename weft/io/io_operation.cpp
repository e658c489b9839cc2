#include "weft/io/io_operation.hpp"

#include <cerrno>
#include <mutex>
#include <utility>

#include "weft/base/errc.hpp"
#include "weft/io/accept_reserve.hpp"

namespace weft::detail {
namespace {

bool is_of_socket(io_request::kind k) noexcept {
    return k != io_request::read && k != io_request::write && k != io_request::poll;
}

}  // namespace

io_operation::io_operation(const io_request& r, std::size_t least, duration timeout,
                           const char* what) noexcept
    : request_(r), what_(what), least_(least), timeout_(timeout) {}

io_operation::io_operation(io_operation&& other) noexcept
    : request_(other.request_),
      reserve_(other.reserve_),
      enough_(other.enough_),
      what_(other.what_),
      least_(other.least_),
      deadline_(other.deadline_),
      timeout_(other.timeout_) {}

// What a call gave. True: there is no more to do.
bool io_operation::progress(std::int64_t n) noexcept {
    if (n < 0) {
        if (passes_over(static_cast<int>(-n))) return false;
        error_ = static_cast<int>(-n);
        return through_ = true;
    }
    const auto count = static_cast<std::size_t>(n);
    done_ += count;
    if (count == 0) return through_ = true;
    if (enough_ != nullptr) return through_ = enough_(*this, count);
    if (done_ >= least_) return through_ = true;
    request_.data = static_cast<std::byte*>(request_.data) + count;
    request_.bytes -= count;
    return false;
}

// Makes the call while the entry is ready. True: there is no more to do.
bool io_operation::attempt() noexcept {
    if (!request_.of) return progress(-EBADF);
    io_entry& e = request_.of.entry();
    const std::uint64_t flag = request_.flag();
    for (;;) {
        std::uint64_t seen;
        if (!e.enter(request_.of.generation(), seen)) {
            error_ = was_closed;
            return through_ = true;
        }
        if ((seen & flag) == 0) {
            e.leave(seen, 0);
            return false;
        }
        const std::int64_t n = request_.perform();
        const bool all = n > 0 && (seen & io_entry::stream) != 0 && (seen & io_entry::ended) == 0 &&
                         static_cast<std::size_t>(n) < request_.bytes;
        e.leave(seen, n == -EAGAIN || all ? flag : 0);
        if (n == -EAGAIN || n == -EINTR) continue;  // an event may have come meanwhile
        if (progress(n)) return true;
        if (pause_until_ != never) return false;
    }
}

// D1. True: the waiter stands in the queue. False: there is no more to do.
bool io_operation::enlist() noexcept {
    io_entry& e = request_.of.entry();
    io_driver* driver = io_driver_here();
    if (driver == nullptr) driver = shared_io_driver();
    if (driver == nullptr) return !progress(-EMFILE);
    for (;;) {
        {
            const std::lock_guard held(e.lock);
            if (pause_until_ != never) return true;  // only the time is waited for
            // Acquire: pairs with the event.
            const std::uint64_t now = e.word.load(std::memory_order_acquire);
            const bool same = io_entry::generation_of(now) == request_.of.generation();
            if (same && (now & (request_.flag() | io_entry::closed)) == 0) {
                if (auto error = e.be_watched_by(*driver, request_.of.generation()))
                    return !progress(-error.value());
                e.waiting[request_.reads ? 0 : 1].push_back(node_);
                return true;
            }
        }
        if (attempt()) return false;
    }
}

// Whom the call is given to; null where the party makes it itself, as it does on what is no socket:
// that is waited for by readiness with every driver.
io_driver* io_operation::giver() const noexcept {
    io_driver* const d = io_driver_here();
    return d != nullptr && d->completes() && is_of_socket(request_.what) ? d : nullptr;
}

bool io_operation::ready() noexcept { return giver() == nullptr && attempt(); }

bool io_operation::start(waiter& w) noexcept {
    if (timeout_ != duration::max()) deadline_ = after(now(), timeout_);
    node_.owner = request_.owner = &w;
    w.await_outside();
    if (io_driver* const d = giver()) {
        w.enlist(what_, request_.of.thing(), this, withdraw, interrupt);
        return submit(*d);
    }
    w.enlist(what_, request_.of.thing(), this, withdraw);
    return enlist();
}

// True: a driver has it.
bool io_operation::submit(io_driver& d) noexcept {
    std::uint64_t seen;
    if (!request_.of || !request_.of.entry().enter(request_.of.generation(), seen)) {
        error_ = request_.of ? was_closed : EBADF;
        through_ = true;
        return false;
    }
    request_.under_way = true;
    request_.driver = &d;
    d.submit(request_);
    return true;
}

bool io_operation::again(waiter& w) noexcept {
    // The end of a pause is not the end of the wait.
    const bool paused = std::exchange(pause_until_, never) != never;
    if (paused ? w.reason() != stop_reason::none || deadline_ <= now()
               : w.status() == wait_status::timed_out)
        return true;
    io_driver* const d = request_.driver;
    if (d == nullptr ? attempt() : !paused && completed(w)) return true;
    if (!w.renew(deadline(), reports_stop)) return true;
    if (pause_until_ != never || (d != nullptr ? submit(*d) : enlist())) return false;
    static_cast<void>(w.claim());  // renew has made it pending, and nobody else sees it
    return true;
}

// The driver has given the request back. True: there is no more to do.
bool io_operation::completed(const waiter& w) noexcept {
    const std::int64_t n = request_.result;
    if (n == -ECANCELED && (w.is_late() || w.reason() != stop_reason::none)) return true;
    const bool polled = std::exchange(request_.poll_first, false);
    if (n <= 0 && !request_.of.is_open()) {
        error_ = was_closed;
        return through_ = true;
    }
    if (n == -EAGAIN) {
        request_.poll_first = true;  // it is one that does not block
    } else if (n != -EINTR && !(polled && n >= 0) && progress(n)) {
        return true;
    }
    return w.is_late();
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
    if (self.request_.under_way)
        self.request_.driver->cancel(self.request_);
    else if (w.claim())
        w.wake();  // from a pause
}

transferred io_operation::outcome(const waiter* w, wait_status how) const noexcept {
    if (through_ && error_ == 0) return {done_, {}};
    std::error_code why;
    if (through_)
        why = error_ == was_closed ? make_error_code(errc::closed)
                                   : std::error_code(error_, std::system_category());
    else if (how == wait_status::timed_out || (w != nullptr && w->is_late()))
        why = std::make_error_code(std::errc::timed_out);
    else
        why = std::make_error_code(std::errc::operation_canceled);
    return {done_, why};
}

}  // namespace weft::detail
