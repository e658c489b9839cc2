// io_operation: a call on a descriptor that waits until it can be made; the base of the operations
// on sockets.
//
// Design: try, wait, try again, and be done when enough has come. With a readiness driver a try is
// the system call, made in the flow's own turn, so that what it reads is in the cache when the flow
// goes on; with a completion driver a try checks what has come.
//
//      ready()  try --- enough ---------------------------------------> take()
//                 \                                                    ^
//      start()     try; enlist, or submit ... event --> again()  try -/
//                                              ^                    \ not enough
//                                              +---------------------+
//
// The fields that most operations touch come first; those for a deadline, a pause or a completion
// driver come after them. A plain read or write of a stream is smaller: stream_transfer.hpp.
//
// An operation that ends early has what was transferred until then: a deadline or a stop loses no
// bytes, and is the error only if there were none.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include "weft/base/detail/min_max.hpp"
#include "weft/base/errc.hpp"
#include "weft/base/result.hpp"
#include "weft/io/detail/io_request.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/transfer_result.hpp"
#include "weft/wait/operation.hpp"

namespace weft::detail {

class reserve_fd;

// A transfer that ended early without an error has met the end of the stream or of the file.
inline transfer_result all_or_eof(transfer_result t, std::size_t all) noexcept {
    return t && t.bytes() != all ? transfer_result(t.bytes(), errc::unexpected_eof) : t;
}

class io_operation {
public:
    static constexpr bool reports_stop = true;

    io_operation(io_operation&& other) noexcept;  // before it is awaited
    ~io_operation() = default;

    bool ready() noexcept {
        // Room to send is mostly there, and a call costs less here than in a ring.
        if (!request_.sends() && completion_driver() != nullptr) return found_unusable();
        // The frequent outcome: the entry knows that there is nothing.
        if (request_.of && request_.is_unready()) return false;
        return attempt();
    }
    bool start(waiter& w) noexcept;
    bool again(waiter& w) noexcept;
    time_point deadline() const noexcept {
        if (!has_deadline_ && !has_pause_) [[likely]]
            return never;
        return detail::min_of(has_deadline_ ? deadline_ : never, has_pause_ ? pause_until_ : never);
    }

protected:
    // `least`: how many bytes are enough: one, or all that the request asks for.
    io_operation(const io_request& r, std::size_t least, duration timeout,
                 const char* what) noexcept
        : what_(what), whole_(least > 1), request_(r) {
        set_timeout(timeout);
    }
    // The same for a transfer; the request is constructed in place.
    io_operation(io_request::kind k, bool reads, const descriptor_ref& of, void* data,
                 std::size_t bytes, std::size_t least, duration timeout, const char* what) noexcept
        : what_(what), whole_(least > 1), request_(k, reads, of, data, bytes) {
        set_timeout(timeout);
    }

    // Called by start(): the timeout counts from now on.
    void begin_timeout() noexcept;
    // The driver that the call is submitted to; null if the flow makes the call itself, or has it
    // made.
    io_driver* completion_driver() const noexcept {
        io_driver* const d = io_driver_here();
        return d != nullptr && submits_to(*d) ? d : nullptr;
    }
    // The result of a call. True: there is no more to do.
    WEFT_ALWAYS_INLINE bool progress(std::int64_t n) noexcept {
        if (n <= 0 || enough_ != nullptr) [[unlikely]]
            return progress_rarely(n);
        const auto count = static_cast<std::size_t>(n);
        done_ += count;
        if (!whole_ || count == request_.bytes) [[likely]]
            return through_ = true;
        request_.data = static_cast<std::byte*>(request_.data) + count;
        request_.bytes -= count;
        return false;
    }
    bool progress_rarely(std::int64_t n) noexcept;
    // There is nothing to call, and that is no error: true.
    bool found_nothing_to_do() noexcept { return through_ = true; }
    // For a call that returns an fd: the fd that has come and that nothing has taken; -1: none.
    int untaken_number() const noexcept {
        if (through_) return error_ == 0 ? static_cast<int>(done_) : -1;
        const bool came = request_.given && !request_.under_way && !request_.poll_first;
        return came ? static_cast<int>(detail::max_of<std::int64_t>(request_.result, -1)) : -1;
    }
    // The descriptor was closed before the call: true.
    bool found_closed() noexcept {
        error_ = was_closed;
        return through_ = true;
    }

    // There is no open descriptor to make the call on: true. For what ready() does not try: a stop
    // would hide it otherwise.
    bool found_unusable() noexcept {
        if (request_.of.is_open()) [[likely]]
            return false;
        return request_.of ? found_closed() : progress(-EBADF);
    }

    // Leaves the queues in which it still is. An event takes an operation that waits to write or to
    // read out of one queue only.
    static void cancel(waiter& w) noexcept;
    // That was all for now, and not the outcome; for an operation that ends a turn early, so that
    // others have one.
    void go_on() noexcept { through_ = false; }

    // Of the operation that was made without one. A duration begins in start().
    void set_limit(time_limit limit) noexcept {
        if (limit.is_timeout())
            set_timeout(limit.timeout());
        else
            set_deadline(limit.deadline_from({}));
    }
    // Replaces a timeout.
    void set_deadline(time_point t) noexcept {
        deadline_ = t;
        has_deadline_ = t != never;
    }
    // While it waits: moves the deadline on by this much, but to no later than the timeout from
    // now.
    void prolong(duration by) noexcept;

    WEFT_ALWAYS_INLINE transfer_result outcome(const waiter* w, wait_status how) const noexcept {
        if (through_ && error_ == 0) [[likely]]
            return {done_, {}};
        return {done_, error_of(w, how)};
    }
    // The same if a part is as good as the whole: an error only if there was nothing.
    result<std::size_t> some(const waiter* w, wait_status how) const noexcept {
        const transfer_result t = outcome(w, how);
        if (!t && t.bytes() == 0) return failure(t.error());
        return t.bytes();
    }

    // Replaces `least`; called after each call that transferred something. Returns whether that was
    // all; if not, the request now describes what comes next.
    bool (*enough_)(io_operation&, std::size_t count) noexcept = nullptr;
    const char* what_;  // the awaited object, for messages

private:
    std::size_t done_ = 0;
    int error_ = 0;            // an errno value, or was_closed
    std::uint8_t pauses_ = 0;  // how many, for want of an event
    bool through_ = false;     // there is an outcome
    bool whole_ : 1;           // some is not enough
    bool moves_ : 1 = false;  // the deadline was moved, and the timer may be set for an earlier one
    bool has_timeout_ : 1 = false;
    bool has_deadline_ : 1 = false;
    bool has_pause_ : 1 = false;

protected:
    bool lacks_turn_ : 1 = false;  // of a stream's operation: another operation has the turn
    bool has_turn_ = false;        // this operation has the turn

private:
    io_wait_node node_;

protected:
    io_request request_;
    reserve_fd* reserve_ = nullptr;  // for an accept

private:
    time_point deadline_ = never;     // if it has one
    time_point pause_until_ = never;  // in a pause it waits for nothing else
    duration timeout_ = no_timeout;   // if it has one

    static constexpr int was_closed = -1;

    void set_timeout(duration d) noexcept {
        if (d == no_timeout) [[likely]]
            return;
        timeout_ = d;
        has_timeout_ = true;
    }
    void pause_until(time_point t) noexcept {
        pause_until_ = t;
        has_pause_ = true;
    }

    bool submits_to(io_driver& d) const noexcept {
        // A connection that was begun by readiness is under way: a second call would fail.
        if (!d.completes() || !request_.can_be_given() || request_.begun) return false;
        if (request_.of && request_.of.entry().is_crowded()) [[unlikely]]
            return false;
        // The system would write to a shared stack while another flow uses it.
        const flow* const f = current_flow();
        if (f != nullptr && f->shares_stack()) return false;
        return request_.what != io_request::accept || may_accept_ahead(d);
    }
    bool may_accept_ahead(io_driver& d) const noexcept;
    bool attempt() noexcept;
    bool has_moved_on() const noexcept;
    bool enlist(io_driver* here) noexcept;
    bool submit(io_driver& d) noexcept;
    bool completed(const waiter& w) noexcept;
    bool passes_over(int error) noexcept;
    std::error_code error_of(const waiter* w, wait_status how) const noexcept;
    static void interrupt(waiter& w, stop_reason) noexcept;
};

}  // namespace weft::detail
