#include "weft/io/stream.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "weft/base/errc.hpp"
#include "weft/io/file.hpp"

namespace weft {
namespace detail {

std::uint64_t kind_of_socket(int number) noexcept {
    int protocol = 0;
    ::socklen_t bytes = sizeof protocol;
    const int r = ::getsockopt(number, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes);
    return r == 0 && protocol == IPPROTO_TCP ? io_entry::short_is_all : 0;
}

result<descriptor> own_stream(int number, std::uint64_t kind) noexcept {
    std::error_code error;
    const descriptor_ref ref = descriptor_ref::adopt(number, kind, error);
    if (ref) return descriptor(ref);
    if (number >= 0) ::close(number);
    return failure(error);
}

result<std::shared_ptr<stream_core>> hold_stream(descriptor owned) noexcept {
#if WEFT_EXCEPTIONS
    try {
#endif
        auto core = std::make_shared<stream_core>();
        core->owned = std::move(owned);
        return core;
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        return failure(std::errc::not_enough_memory);
    }
#endif
}

bool read_exact_operation::look(io_operation& op, std::size_t count) noexcept {
    auto& self = static_cast<read_exact_operation&>(op);
    self.request_.data = static_cast<std::byte*>(self.request_.data) + count;
    self.request_.bytes -= count;
    if (self.request_.bytes == 0) return true;
    self.credit(count);
    return false;
}

read_until_operation::read_until_operation(stream_core& c, std::string& text, std::string_view mark,
                                           std::size_t most) noexcept
    : long_read_operation(c, nullptr, 0, 1),
      text_(&text),
      mark_(mark),
      most_(most),
      filled_(text.size()) {
    enough_ = look;
}

bool read_until_operation::ready() {
    if (found() || !make_room()) return true;
    return stream_operation::ready();
}

// Searches only the bytes that are new, and as many before them as may be the start of the
// delimiter.
bool read_until_operation::found() noexcept {
    const std::size_t from = looked_at_ - std::min(looked_at_, mark_.size() - !mark_.empty());
    looked_at_ = filled_;
    const std::size_t at = std::string_view(text_->data(), filled_).find(mark_, from);
    if (at == std::string_view::npos || at + mark_.size() > most_) return false;
    end_ = at + mark_.size();
    return is_found_ = true;
}

// False: `most_` bytes have come, without the delimiter.
bool read_until_operation::make_room() {
    constexpr std::size_t step = 4096;
    if (filled_ >= most_) return false;
    const std::size_t size = std::min(std::max(filled_ + step, text_->capacity()), most_);
    text_->resize(size);
    request_.data = text_->data() + filled_;
    request_.bytes = size - filled_;
    return true;
}

bool read_until_operation::look(io_operation& op, std::size_t count) noexcept {
    auto& self = static_cast<read_until_operation&>(op);
    self.filled_ += count;
    if (self.found()) return true;
#if WEFT_EXCEPTIONS
    try {
#endif
        if (!self.make_room()) return true;
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        return self.has_no_memory_ = true;
    }
#endif
    if (self.is_measured()) self.credit(count);
    return false;
}

result<std::size_t> read_until_operation::take(const waiter* w, wait_status how) noexcept {
    if (is_out_of_turn()) return failure(std::errc::operation_in_progress);
    release();
    text_->resize(filled_);
    if (is_found_) return end_;
    if (has_no_memory_) return failure(std::errc::not_enough_memory);
    if (filled_ >= most_) return failure(std::errc::message_size);
    const transfer_result t = outcome(w, how);
    return failure(t ? make_error_code(errc::unexpected_eof) : t.error());
}

send_file_operation::send_file_operation(stream_core& c, const descriptor_ref& from,
                                         std::uint64_t offset, std::uint64_t bytes) noexcept
    : stream_operation(c, false, nullptr, 0, 1, c.options.write_timeout, "room for a file"),
      part_{from, offset, 0},
      left_(bytes),
      all_(static_cast<std::size_t>(bytes)) {
    request_.what = io_request::send_file;
    enough_ = look;
}

// True: the operation is done, with an error or with nothing to send.
bool send_file_operation::is_refused() noexcept {
    struct ::stat s{};
    const std::int64_t n =
        part_.from.call([&](int number) noexcept { return ::fstat(number, &s); });
    if (n == -EBADF && part_.from && !part_.from.is_open()) return found_closed();
    if (n < 0) return progress(n);
    if (S_ISDIR(s.st_mode)) return progress(-EISDIR);
    if (!S_ISREG(s.st_mode) || part_.offset > std::uint64_t{INT64_MAX}) return progress(-EINVAL);
    if (left_ != static_cast<std::size_t>(left_))
        return progress(-EINVAL);  // the result could not count them
    return left_ == 0 && progress(0);
}

bool send_file_operation::ready() noexcept {
    if (!take_turn() || (request_.of && is_refused())) return true;
    request_.data = &part_;  // stays at this address from now on
    part_.bytes = bytes_of_turn();
    return io_operation::ready() && !rests();
}

bool send_file_operation::start(waiter& w) noexcept {
    if (io_operation::start(w)) return true;
    if (!rests()) return false;
    if (w.claim()) w.wake();  // behind what is ready
    return true;
}

bool send_file_operation::again(waiter& w) noexcept {
    if (!io_operation::again(w)) return false;
    if (!rests() || !w.rearm(deadline(), reports_stop)) return true;
    if (w.claim()) w.wake();
    return false;
}

// Whether only this turn has ended, and not the operation.
bool send_file_operation::rests() noexcept {
    turn_ = 0;
    if (!std::exchange(rests_, false)) return false;
    go_on();
    return true;
}

bool send_file_operation::look(io_operation& op, std::size_t count) noexcept {
    auto& self = static_cast<send_file_operation&>(op);
    self.left_ -= count;
    self.part_.offset += count;
    self.part_.bytes = self.bytes_of_turn();
    self.turn_ += count;
    self.rests_ = self.left_ != 0 && self.turn_ >= turn_bytes;
    return self.left_ == 0 || self.rests_;
}

transfer_result send_file_operation::take(const waiter* w, wait_status how) noexcept {
    if (is_out_of_turn()) return {0, std::make_error_code(std::errc::operation_in_progress)};
    release();
    return all_or_eof(outcome(w, how), all_);
}

closing_operation::closing_operation(stream_core& c, time_limit limit, std::size_t most) noexcept
    : stream_operation(c, true, nullptr, 0, 1, no_timeout, "the peer to end"), left_(most) {
    set_limit(limit);
    enough_ = look;
}

bool closing_operation::ready() noexcept {
    if (!take_turn()) return true;
    // If that fails, so does the read.
    static_cast<void>(request_.of.call([](int n) noexcept { return ::shutdown(n, SHUT_WR); }));
    room_.reset(new (std::nothrow) std::byte[room_bytes]);
    if (room_ == nullptr || left_ == 0) return true;
    request_.data = room_.get();
    request_.bytes = std::min(left_, room_bytes);
    return io_operation::ready();
}

bool closing_operation::look(io_operation& op, std::size_t count) noexcept {
    auto& self = static_cast<closing_operation&>(op);
    self.left_ -= count;
    self.request_.bytes = std::min(self.left_, room_bytes);
    return self.left_ == 0;
}

transfer_result closing_operation::take(const waiter* w, wait_status how) noexcept {
    if (is_out_of_turn()) return {0, std::make_error_code(std::errc::operation_in_progress)};
    release();
    const transfer_result t = outcome(w, how);
    core_->owned.ref().close();
    if (left_ == 0) return {t.bytes(), std::make_error_code(std::errc::message_size)};
    if (room_ == nullptr) return {t.bytes(), std::make_error_code(std::errc::not_enough_memory)};
    return t;
}

}  // namespace detail

namespace {

using detail::io_entry;
using detail::stream_core;

// The call was not made, and the caller does not have the turn: an operation has to decide.
constexpr std::int64_t not_tried = INT64_MIN + 1;
static_assert(not_tried != io_entry::was_closed);

// Makes a call before there is an operation for it, in the turn that it takes and keeps. Usually
// the call moves all the bytes, and the fields of an operation, in cold lines of the stack, need
// not be written. What the call returned, -EAGAIN if it would wait, was_closed or not_tried.
template <class F>
WEFT_ALWAYS_INLINE std::int64_t at_once(stream_core& c, bool reads, const std::size_t& bytes,
                                        F call) noexcept {
    const detail::descriptor_ref& of = c.owned.ref();
    if (!of || bytes == 0) [[unlikely]]
        return not_tried;
    // Relaxed, both: a turn publishes no data.
    if (c.turn(reads).exchange(true, std::memory_order_relaxed)) [[unlikely]]
        return not_tried;
    io_entry& e = of.entry();
    const std::uint64_t flag = reads ? io_entry::readable : io_entry::writable;
    return e.try_call(of.generation(), flag, bytes, [&]() -> std::int64_t {
        const ::ssize_t moved = call(e.number);
        return moved >= 0 ? moved : errno == EWOULDBLOCK ? -EAGAIN : -errno;
    });
}
// Ends the turn. Relaxed: as above.
void release(stream_core& c, bool reads) noexcept {
    c.turn(reads).store(false, std::memory_order_relaxed);
}

WEFT_ALWAYS_INLINE std::int64_t send_at_once(stream_core& c,
                                             const std::span<const std::byte>& from) noexcept {
    const std::size_t bytes = from.size();
    return at_once(c, false, bytes, [&](int number) noexcept {
        return ::send(number, from.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    });
}
std::error_code error_of(std::int64_t n) noexcept {
    if (n == io_entry::was_closed) return make_error_code(errc::closed);
    return {static_cast<int>(-n), std::system_category()};
}
result<std::size_t> moved_or_error(std::int64_t n) noexcept {
    if (n < 0) return failure(error_of(n));
    return static_cast<std::size_t>(n);
}
bool has_to_wait(std::int64_t n) noexcept { return n == -EAGAIN || n == not_tried; }
// Whether the operation that is to wait is made in the turn that at_once() has kept. Not for a flow
// on a shared stack, for which there may be no memory for an operation, that is nothing to end the
// turn.
bool keeps_turn(stream_core& c, bool reads, std::int64_t n) noexcept {
    if (n == not_tried) return false;
    if (!detail::is_on_shared_stack()) [[likely]]
        return true;
    release(c, reads);
    return false;
}

WEFT_ALWAYS_INLINE std::int64_t receive_at_once(stream_core& c,
                                                const std::span<std::byte>& into) noexcept {
    const std::size_t bytes = into.size();
    return at_once(c, true, bytes, [&](int number) noexcept {
        return ::recv(number, into.data(), bytes, MSG_DONTWAIT);
    });
}
WEFT_NOINLINE result<std::size_t> read_now(stream_core& c, std::span<std::byte> into,
                                           std::source_location caller) {
    const std::int64_t n = receive_at_once(c, into);
    if (has_to_wait(n)) [[unlikely]]
        return detail::block_in_place<detail::read_transfer_operation>(caller, std::ref(c), into,
                                                                       n != not_tried);
    release(c, true);
    return moved_or_error(n);
}
// Whether a look is known to find nothing, or is left to the driver, which is given the call.
WEFT_ALWAYS_INLINE bool has_no_look(const detail::descriptor_ref& of) noexcept {
    if (!of) [[unlikely]]
        return false;
    if (of.entry().is_unready(of.generation(), io_entry::readable)) return true;
    const io_driver* const d = detail::io_driver_here();
    return d != nullptr && d->completes() && of.is_open();
}

// In a frame of its own, which the caller does not need, as it usually need not wait.
template <class Op, class... Args>
WEFT_NOINLINE auto block_beside(std::source_location caller, Args... args) {
    return detail::block_in_place<Op>(caller, args...);
}
// Waits with an operation that is not on the stack, if a flow is on a shared one.
template <class Op, class... Args>
WEFT_ALWAYS_INLINE auto block_outside(std::source_location caller, Args... args) {
    if (detail::is_on_shared_stack()) [[unlikely]]
        return detail::block_apart<Op>(*current_flow(), caller, args...);
    return block_beside<Op>(caller, args...);
}

}  // namespace

// Each is a function that is never inlined, so that what they keep on a fiber's stack is at one
// depth: what one of them has touched, the next one finds in the cache.

result<std::size_t> stream::read_here(std::span<std::byte> into, std::source_location caller) {
    stream_core& c = core();
    if (!has_no_look(c.owned.ref())) [[unlikely]]
        return read_now(c, into, caller);
    return detail::block_in_place<detail::read_transfer_operation>(caller, std::ref(c), into);
}
result<std::size_t> stream::read_apart(std::span<std::byte> into, std::source_location caller) {
    stream_core& c = core();
    const std::int64_t n = receive_at_once(c, into);
    if (has_to_wait(n)) {
        if (n != not_tried) release(c, true);
        return detail::block_apart<detail::read_transfer_operation>(*current_flow(), caller,
                                                                    std::ref(c), into);
    }
    release(c, true);
    return moved_or_error(n);
}

result<borrowed_buffer> stream::read_borrowed(std::source_location caller) {
    auto op = async_read_borrowed();
    return detail::block_for(op, caller);
}

transfer_result stream::read_exact(std::span<std::byte> into, std::source_location caller) {
    auto op = async_read_exact(into);
    return detail::block_for(op, caller);
}

result<std::size_t> stream::read_until(std::string& text, std::string_view mark, std::size_t most,
                                       std::source_location caller) {
    auto op = async_read_until(text, mark, most);
    return detail::block_for(op, caller);
}

result<std::size_t> stream::write(std::span<const std::byte> from, std::source_location caller) {
    stream_core& c = core();
    const std::int64_t n = send_at_once(c, from);
    if (has_to_wait(n)) [[unlikely]]
        return block_outside<detail::write_transfer_operation>(caller, std::ref(c), from,
                                                               keeps_turn(c, false, n));
    release(c, false);
    return moved_or_error(n);
}

transfer_result stream::write_all(std::span<const std::byte> from, std::source_location caller) {
    stream_core& c = core();
    const std::int64_t n = send_at_once(c, from);
    if (has_to_wait(n)) [[unlikely]]
        return block_outside<detail::write_all_transfer_operation>(caller, std::ref(c), from,
                                                                   keeps_turn(c, false, n));
    if (n >= 0 && static_cast<std::size_t>(n) < from.size()) [[unlikely]]
        // Here on a shared stack too: if there is no memory for a wait, the operation ends its
        // turn.
        return detail::block_here<detail::write_all_transfer_operation>(
            caller, std::ref(c), from, static_cast<std::size_t>(n));
    release(c, false);
    if (n < 0) return {0, error_of(n)};
    return {from.size(), {}};
}

result<std::size_t> stream::read(buffers_of<std::byte> into, std::source_location caller) {
    auto op = async_read(into);
    return detail::block_for(op, caller);
}

transfer_result stream::write_all(buffers_of<const std::byte> from, std::source_location caller) {
    auto op = async_write_all(from);
    return detail::block_for(op, caller);
}

detail::send_file_operation stream::async_send_file(const file& from, std::uint64_t offset,
                                                    std::uint64_t bytes) noexcept {
    return {core(), from.core().owned.ref(), offset, bytes};
}

transfer_result stream::send_file(const file& from, std::uint64_t offset, std::uint64_t bytes,
                                  std::source_location caller) {
    auto op = async_send_file(from, offset, bytes);
    return detail::block_for(op, caller);
}

transfer_result stream::close_gracefully(time_limit limit, std::size_t most,
                                         std::source_location caller) {
    auto op = async_close_gracefully(limit, most);
    return detail::block_for(op, caller);
}

result<void> stream::shutdown(direction d) noexcept {
    const int how = d == direction::read ? SHUT_RD : d == direction::write ? SHUT_WR : SHUT_RDWR;
    return detail::done_or(ref(), [how](int number) { return ::shutdown(number, how); });
}

void stream::abort() noexcept {
    if (core_ == nullptr) return;
    const ::linger at_once = {1, 0};
    static_cast<void>(ref().call([&](int number) {
        return ::setsockopt(number, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }));
    close();
}

}  // namespace weft
