#include "weft/io/relay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weft {
namespace detail {

relay_operation::relay_operation(stream_core& from, stream_core& to, std::uint64_t most) noexcept
    : io_operation(io_request::splice, true, from.owned.ref(), nullptr, 0, 1,
                   std::min(from.options.read_timeout, to.options.write_timeout), "bytes to relay"),
      from_(&from),
      to_(&to),
      left_(most),
      patience_(std::min(from.options.read_timeout, to.options.write_timeout)) {
    enough_ = look;
}

relay_operation::relay_operation(relay_operation&& other) noexcept
    : io_operation(std::move(other)),
      from_(other.from_),
      to_(other.to_),
      left_(other.left_),
      patience_(other.patience_) {}

// Relaxed: a turn publishes no data.
bool relay_operation::take_turns() noexcept {
    reads_ = !from_->read_by_somebody.exchange(true, std::memory_order_relaxed);
    if (reads_) writes_ = !to_->written_by_somebody.exchange(true, std::memory_order_relaxed);
    refused_ = !writes_;
    return writes_;
}

// Relaxed: as in take_turns().
void relay_operation::release() noexcept {
    if (std::exchange(reads_, false))
        from_->read_by_somebody.store(false, std::memory_order_relaxed);  // as said above
    if (std::exchange(writes_, false))
        to_->written_by_somebody.store(false, std::memory_order_relaxed);  // the same
}

bool relay_operation::ready() noexcept {
    const descriptor_ref to = to_->owned.ref();
    if (!request_.of || !to) return progress(-EBADF);
    if (!request_.of.is_open() || !to.is_open()) return found_closed();  // no bytes are lost
    if (!take_turns()) return true;
    if (left_ == 0) return found_nothing_to_do();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return progress(-errno);
    outlet_.reset(ends[0]);
    inlet_.reset(ends[1]);
    request_.data = &part_;  // stays at this address from now on
    fill();
    return io_operation::ready() && !rests();
}

// The pipe is empty: prepares the next splice into it.
void relay_operation::fill() noexcept {
    request_.reads = true;
    request_.of = from_->owned.ref();
    part_ = {inlet_.get(), static_cast<std::size_t>(std::min<std::uint64_t>(left_, pipe_bytes))};
}

bool relay_operation::look(io_operation& op, std::size_t count) noexcept {
    auto& self = static_cast<relay_operation&>(op);
    self.prolong(self.patience_);
    if (self.request_.reads) {
        self.left_ -= count;
        self.request_.reads = false;
        self.request_.of = self.to_->owned.ref();
        self.part_ = {self.outlet_.get(), count};
        return false;
    }
    self.arrived_ += count;
    self.turn_ += count;
    self.part_.bytes -= count;
    if (self.part_.bytes != 0) return false;
    self.fill();
    self.rests_ = self.left_ != 0 && self.turn_ >= turn_bytes;
    return self.left_ == 0 || self.rests_;
}

bool relay_operation::start(waiter& w) noexcept {
    if (io_operation::start(w)) return true;
    if (!rests()) return false;
    if (w.claim()) w.wake();  // behind what is ready
    return true;
}

bool relay_operation::again(waiter& w) noexcept {
    if (!io_operation::again(w)) return false;
    if (!rests() || !w.rearm(deadline(), reports_stop)) return true;
    if (w.claim()) w.wake();
    return false;
}

// Whether only this turn has ended, and not the operation.
bool relay_operation::rests() noexcept {
    turn_ = 0;
    if (!std::exchange(rests_, false)) return false;
    go_on();
    return true;
}

relay_result relay_operation::take(const waiter* w, wait_status how) {
    if (refused_) return {0, {}, std::make_error_code(std::errc::operation_in_progress)};
    release();
    std::vector<std::byte> rest;
    if (outlet_ && !request_.reads) {
        rest.resize(part_.bytes);
        const ::ssize_t n = ::read(outlet_.get(), rest.data(), rest.size());
        rest.resize(static_cast<std::size_t>(std::max<::ssize_t>(n, 0)));
    }
    return {arrived_, std::move(rest), outcome(w, how).error()};
}

}  // namespace detail

detail::relay_operation async_relay(stream& from, stream& to, std::uint64_t most) noexcept {
    return {from.core(), to.core(), most};
}

relay_result relay(stream& from, stream& to, std::uint64_t most, std::source_location caller) {
    auto op = async_relay(from, to, most);
    return detail::block_for(op, caller);
}

}  // namespace weft
