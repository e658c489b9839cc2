#include "weft/io/detail/stream_transfer.hpp"

#include <memory>

#include "weft/base/errc.hpp"

namespace weft::detail {

bool stream_transfer::may_be_given() const noexcept {
    const descriptor_ref& of = core_->owned.ref();
    if (of && of.entry().is_crowded()) [[unlikely]]
        return false;
    // The system would write to a shared stack while another flow uses it.
    const flow* const f = current_flow();
    return f == nullptr || !f->shares_stack();
}

// Makes the call while the entry is ready. True: there is no more to do.
bool stream_transfer::attempt() noexcept {
    const descriptor_ref& of = core_->owned.ref();
    if (!of) return failed(EBADF);
    io_entry& e = of.entry();
    for (;;) {
        const std::int64_t n = e.try_call(of.generation(), flag(), left_, [&]() -> std::int64_t {
            const ::ssize_t moved =
                reads_ ? ::recv(e.number, data_, left_, MSG_DONTWAIT)
                       : ::send(e.number, data_, left_, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (moved >= 0) [[likely]]
                return moved;
            return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        });
        if (n == -EAGAIN) return false;
        if (n == io_entry::was_closed) return failed(was_closed);
        if (progress(n)) return true;
    }
}

// True: it is queued. False: there is no more to do.
WEFT_ALWAYS_INLINE bool stream_transfer::enlist(io_driver* here) noexcept {
    const int r = detail::enlist(core_->owned.ref(), room_->node, flag(), here, nullptr);
    return r == io_entry::stands || enlist_rarely(here, r);
}
WEFT_NOINLINE bool stream_transfer::enlist_rarely(io_driver* here, int r) noexcept {
    for (; r != io_entry::stands;
         r = detail::enlist(core_->owned.ref(), room_->node, flag(), here, nullptr)) {
        if (r != io_entry::look_again) return !failed(r);
        if (attempt()) return false;
    }
    return true;
}

bool stream_transfer::start(waiter& w, transfer_room& r) noexcept {
    room_ = &r;
    const duration timeout = reads_ ? core_->options.read_timeout : core_->options.write_timeout;
    if (timeout != no_timeout) [[unlikely]] {
        r.deadline = after(now(), timeout);
        has_deadline_ = true;
    }
    w.mark_external();
    const char* const what = reads_ ? "bytes to read" : "room to write";
    io_driver* const here = io_driver_here();
    if (here != nullptr && here->completes() && may_be_given()) {
        w.enlist(what, core_->owned.ref().thing(), this, cancel, interrupt);
        make_request();
        return submit(*here, w);
    }
    w.enlist(what, core_->owned.ref().thing(), this, cancel);
    r.make_node(w);
    return enlist(here);
}

void stream_transfer::make_request() noexcept {
    room_->leave_line();
    room_->by = transfer_room::request;
    std::construct_at(&room_->given, reads_ ? io_request::receive : io_request::send, bool{reads_},
                      core_->owned.ref(), data_, left_);
    room_->given.given = true;
}

// True: the driver has it.
bool stream_transfer::submit(io_driver& d, waiter& w) noexcept {
    const descriptor_ref& of = core_->owned.ref();
    if (!of) return !failed(EBADF);
    if (!of.entry().enter(of.generation())) return !failed(was_closed);
    if (!of.entry().be_served_by(d)) {
        of.entry().leave();
        return !failed(ENOMEM);
    }
    io_request& given = room_->given;
    given.under_way = true;
    given.driver = &d;
    given.owner = &w;
    given.result = -ECANCELED;
    d.submit(given);
    return true;
}

bool stream_transfer::again(waiter& w) noexcept {
    prefetch(core_);  // the next operation needs it
    const bool by_line = room_->by == transfer_room::line;
    // If a driver had the call at first and no longer has it, the operation's own deadline wakes
    // it.
    if (w.status() == wait_status::timed_out || (by_line && w.is_late())) return true;
    if (by_line ? attempt() : completed(w)) return true;
    const bool polls = !by_line && room_->given.poll_first;
    if (!w.rearm(deadline(), reports_stop)) return true;
    io_driver* const here = io_driver_here();  // another one, if the flow has migrated
    if (here != nullptr && here->completes() && may_be_given()) {
        w.interrupt_by(interrupt);  // it may have begun in a line
        make_request();
        room_->given.poll_first = polls;
        if (submit(*here, w)) return false;
    } else {
        if (!by_line) room_->make_node(w);
        if (enlist(here)) return false;
    }
    static_cast<void>(w.claim());  // rearm() has made it pending, and no other thread sees it
    return true;
}

// The driver has given the request back. True: there is no more to do.
bool stream_transfer::completed(const waiter& w) noexcept {
    io_request& given = room_->given;
    const std::int64_t n = given.result;
    if (n == -ECANCELED && (w.reason() != stop_reason::none || w.is_late())) return true;
    const bool polled = std::exchange(given.poll_first, false);
    if (n <= 0 && !core_->owned.ref().is_open()) return failed(was_closed);
    // An attempt here found no room, and nothing watches for it: if all was sent there is some, and
    // the next attempt is made here again.
    if (!reads_ && n > 0 && static_cast<std::size_t>(n) == left_) {
        const descriptor_ref& of = core_->owned.ref();
        of.entry().notify(of.generation(), io_entry::writable);
    }
    if (n == -EAGAIN) {
        given.poll_first = true;  // the fd is a nonblocking one
    } else if (n == -EINTR || n == -ECANCELED) {
        // A close of another fd of the same file has ended it, which does not concern this one.
    } else if (!(polled && n >= 0) && progress(n)) {
        return true;
    }
    return w.is_late();
}

void stream_transfer::cancel(waiter& w) noexcept {
    auto& self = w.operation<stream_transfer>();
    transfer_room& r = *self.room_;
    if (r.by == transfer_room::line)
        self.core_->owned.ref().entry().cancel(r.node, self.reads_);
    else if (r.given.under_way)
        r.given.driver->cancel_now(r.given);
}

void stream_transfer::interrupt(waiter& w, stop_reason) noexcept {
    auto& self = w.operation<stream_transfer>();
    transfer_room& r = *self.room_;
    if (r.by == transfer_room::request && r.given.under_way) {
        r.given.driver->cancel(r.given);
    } else if (w.claim()) {  // it is queued at the descriptor by now
        cancel(w);
        w.wake();
    }
}

// Why the outcome is not what was asked for.
std::error_code stream_transfer::error_of(const waiter* w, wait_status how) const noexcept {
    if (through_) {
        if (error_ == was_refused) return std::make_error_code(std::errc::operation_in_progress);
        if (error_ == was_closed) return make_error_code(errc::closed);
        return {error_, std::system_category()};
    }
    if (how == wait_status::timed_out || (w != nullptr && w->is_late()))
        return std::make_error_code(std::errc::timed_out);
    return std::make_error_code(std::errc::operation_canceled);
}

}  // namespace weft::detail
