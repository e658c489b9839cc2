// stream_transfer: moves some bytes of a socket into a buffer, or from one: the operation that
// stream::async_read, async_write and async_write_all return, and that the blocking forms wait
// with.
//
// Design: it is small, because a server has two of them in each connection, and what a turn touches
// of a connection is cold. It stores what was asked for, and no more. What it waits with, a node in
// the queue of the descriptor or, for a completion driver, a request, is a room that it gets when
// it waits (wait/operation.hpp). It never needs both, so they are one union there.
//
//      +------+------+-------+------+-------+------+        +---------------+----------+----+
//      | core | data | bytes | done | flags | room ------>  | node          | deadline | by |
//      +------+------+-------+------+-------+------+        | or request .. |          |    |
//                                                           +---------------+----------+----+
//
// It tries, waits and tries again as io_operation does, which is for all other calls and has the
// same rules: what was transferred until a deadline or a stop is not lost, and an error is the
// outcome only if there was nothing.
//
//   const auto n = co_await s.async_read(buffer);
//
// Model: none, the line is io_entry's, and the rest is the waiter's own.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

#include "weft/base/detail/lifetime.hpp"
#include "weft/base/platform.hpp"
#include "weft/base/result.hpp"
#include "weft/io/detail/io_operation.hpp"
#include "weft/io/detail/io_request.hpp"
#include "weft/io/detail/stream_core.hpp"
#include "weft/io/io_driver.hpp"

namespace weft::detail {

// What a transfer waits with.
struct transfer_room {
    enum kind : std::uint8_t { nothing, line, request };

    transfer_room() noexcept {}
    transfer_room(const transfer_room&) = delete;
    ~transfer_room() { leave_line(); }

    void make_node(waiter& w) noexcept {
        by = line;
        detail::construct_at(&node)->owner = &w;
    }
    void leave_line() noexcept {
        if (by == line) detail::destroy_at(&node);
    }

    union {
        io_wait_node node;  // `by` is line: in the queue of the descriptor
        io_request given;   // `by` is request
    };
    time_point deadline;  // if there is one
    kind by = nothing;
};
static_assert(std::is_trivially_destructible_v<io_request>);

class stream_transfer {
public:
    using room = transfer_room;
    static constexpr bool reports_stop = true;

    stream_transfer(stream_transfer&& other) noexcept  // before it is awaited
        : core_(other.core_),
          data_(other.data_),
          left_(other.left_),
          done_(other.done_),
          reads_(other.reads_),
          whole_(other.whole_),
          has_turn_(std::exchange(other.has_turn_, false)) {}
    stream_transfer& operator=(const stream_transfer&) = delete;
    ~stream_transfer() { release(); }

    bool ready() noexcept {
        if (!take_turn()) return true;
        const descriptor_ref& of = core_->owned.ref();
        if (left_ == 0 && of.is_open()) [[unlikely]]
            return through_ = true;
        // A driver is given a read, since a look would mostly find nothing; room to write is mostly
        // there, and a call costs less here than in a ring.
        if (reads_ && completion_driver() != nullptr)
            return !of.is_open() && failed(of ? was_closed : EBADF);
        // The frequent outcome: the entry knows that there is nothing.
        if (of && of.entry().is_unready(of.generation(), flag())) return false;
        return attempt();
    }
    bool start(waiter& w, transfer_room& r) noexcept;
    void lacks_memory() noexcept { failed(ENOMEM); }
    bool again(waiter& w) noexcept;
    time_point deadline() const noexcept { return has_deadline_ ? room_->deadline : never; }

protected:
    stream_transfer(stream_core& c, bool reads, void* data, std::size_t bytes, bool whole) noexcept
        : core_(&c),
          data_(static_cast<std::byte*>(data)),
          left_(bytes),
          reads_(reads),
          whole_(whole) {}

    // Before it is awaited: the caller has the turn, and has moved this many of the bytes in it.
    void go_on_from(std::size_t count) noexcept {
        has_turn_ = true;
        static_cast<void>(progress(static_cast<std::int64_t>(count)));
    }
    void keep_turn(bool has_turn) noexcept { has_turn_ = has_turn; }
    transfer_result outcome(const waiter* w, wait_status how) noexcept {
        release();
        if (through_ && error_ == 0) [[likely]]
            return {done_, {}};
        return {done_, error_of(w, how)};
    }
    // The same if a part is as good as the whole.
    result<std::size_t> some(const waiter* w, wait_status how) noexcept {
        const transfer_result t = outcome(w, how);
        if (!t && t.bytes() == 0) return failure(t.error());
        return t.bytes();
    }

private:
    static constexpr int was_closed = -1;
    static constexpr int was_refused = -2;
    std::uint64_t flag() const noexcept { return reads_ ? io_entry::readable : io_entry::writable; }
    atomic<bool>& turn() noexcept { return core_->turn(reads_); }
    bool take_turn() noexcept {
        // Relaxed, here and below: a turn publishes no data.
        if (!has_turn_) has_turn_ = !turn().exchange(true, std::memory_order_relaxed);
        if (has_turn_ || !core_->owned) [[likely]]  // empty streams share a core without turns
            return true;
        error_ = was_refused;
        return !(through_ = true);
    }
    WEFT_ALWAYS_INLINE void release() noexcept {
        // Relaxed: as in take_turn().
        if (std::exchange(has_turn_, false)) turn().store(false, std::memory_order_relaxed);
    }
    // The driver that the call is submitted to; null if the flow makes the call itself.
    io_driver* completion_driver() const noexcept {
        io_driver* const d = io_driver_here();
        return d != nullptr && d->completes() && may_be_given() ? d : nullptr;
    }
    bool may_be_given() const noexcept;
    // The result of a call. True: there is no more to do.
    WEFT_ALWAYS_INLINE bool progress(std::int64_t n) noexcept {
        if (n < 0) [[unlikely]]
            return failed(static_cast<int>(-n));
        const auto count = static_cast<std::size_t>(n);
        done_ += count;
        if (!whole_ || count == left_ || count == 0) [[likely]]
            return through_ = true;
        data_ += count;
        left_ -= count;
        return false;
    }
    bool failed(int error) noexcept {
        error_ = error;
        return through_ = true;
    }
    bool attempt() noexcept;
    bool enlist(io_driver* here) noexcept;
    bool enlist_rarely(io_driver* here, int r) noexcept;
    bool submit(io_driver& d, waiter& w) noexcept;
    void make_request() noexcept;
    bool completed(const waiter& w) noexcept;
    std::error_code error_of(const waiter* w, wait_status how) const noexcept;
    static void cancel(waiter& w) noexcept;
    static void interrupt(waiter& w, stop_reason) noexcept;

    stream_core* core_;
    std::byte* data_;
    std::size_t left_;
    std::size_t done_ = 0;
    int error_ = 0;  // an errno value, or one of the above
    bool reads_ : 1;
    bool whole_ : 1;  // some is not enough
    bool has_deadline_ : 1 = false;
    bool through_ = false;   // there is an outcome
    bool has_turn_ = false;  // to read, or to write
    transfer_room* room_;    // while it waits
};

// `has_turn`: the caller has taken the turn, and the operation ends it.
class read_transfer_operation : public stream_transfer {
public:
    read_transfer_operation(stream_core& c, std::span<std::byte> into) noexcept
        : stream_transfer(c, true, into.data(), into.size(), false) {}
    read_transfer_operation(stream_core& c, std::span<std::byte> into, bool has_turn) noexcept
        : read_transfer_operation(c, into) {
        keep_turn(has_turn);
    }
    result<std::size_t> take(const waiter* w, wait_status how) noexcept { return some(w, how); }
};

class write_transfer_operation : public stream_transfer {
public:
    write_transfer_operation(stream_core& c, std::span<const std::byte> from) noexcept
        : stream_transfer(c, false, const_cast<std::byte*>(from.data()), from.size(), false) {}
    write_transfer_operation(stream_core& c, std::span<const std::byte> from,
                             bool has_turn) noexcept
        : write_transfer_operation(c, from) {
        keep_turn(has_turn);
    }
    result<std::size_t> take(const waiter* w, wait_status how) noexcept { return some(w, how); }
};

class write_all_transfer_operation : public stream_transfer {
public:
    write_all_transfer_operation(stream_core& c, std::span<const std::byte> from) noexcept
        : stream_transfer(c, false, const_cast<std::byte*>(from.data()), from.size(), true) {}
    write_all_transfer_operation(stream_core& c, std::span<const std::byte> from,
                                 bool has_turn) noexcept
        : write_all_transfer_operation(c, from) {
        keep_turn(has_turn);
    }
    // In the turn to write that the caller has, in which it has sent the first `sent` bytes.
    write_all_transfer_operation(stream_core& c, std::span<const std::byte> from,
                                 std::size_t sent) noexcept
        : write_all_transfer_operation(c, from) {
        go_on_from(sent);
    }
    transfer_result take(const waiter* w, wait_status how) noexcept { return outcome(w, how); }
};

}  // namespace weft::detail
