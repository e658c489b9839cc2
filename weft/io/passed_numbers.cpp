#include "weft/io/passed_numbers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "weft/base/errc.hpp"

namespace weft::detail {
namespace {

constexpr int type_of_pidfd = 4;  // SCM_PIDFD, since Linux 6.5

}  // namespace

numbers_message::numbers_message(std::span<const std::byte> from,
                                 std::span<const int> numbers) noexcept
    : part_{const_cast<std::byte*>(from.data()), from.size()},
      refused_(numbers.size() > most_passed_numbers) {
    if (refused_ || numbers.empty()) return;
    ::cmsghdr head{};
    head.cmsg_len = CMSG_LEN(numbers.size_bytes());
    head.cmsg_level = SOL_SOCKET;
    head.cmsg_type = SCM_RIGHTS;
    std::memcpy(control_, &head, sizeof head);
    std::memcpy(control_ + CMSG_LEN(0), numbers.data(), numbers.size_bytes());
    message_.msg_controllen = CMSG_SPACE(numbers.size_bytes());
}

numbers_message::numbers_message(std::span<std::byte> into, std::span<owned_number> room) noexcept
    : part_{into.data(), into.size()},
      room_(room.first(std::min(room.size(), most_passed_numbers))),
      receives_(true) {
    std::memset(control_, 0, sizeof(::cmsghdr));  // nothing has come
    message_.msg_controllen = CMSG_SPACE(sizeof(::ucred)) + CMSG_SPACE(room_.size() * sizeof(int));
}

::msghdr* numbers_message::begin() noexcept {
    message_.msg_iov = &part_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_;
    return &message_;
}

bool numbers_message::advance(std::size_t bytes) noexcept {
    message_.msg_control = nullptr;
    message_.msg_controllen = 0;
    part_.iov_base = static_cast<std::byte*>(part_.iov_base) + bytes;
    part_.iov_len -= bytes;
    return part_.iov_len == 0;
}

template <class F>
void numbers_message::each(F f) noexcept {
    if (!receives_) return;
    for (::cmsghdr* h = CMSG_FIRSTHDR(&message_); h != nullptr; h = CMSG_NXTHDR(&message_, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_len < CMSG_LEN(0)) continue;
        const std::size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i != count; ++i) {
            int number;
            std::memcpy(&number, CMSG_DATA(h) + i * sizeof number, sizeof number);
            if (h->cmsg_type == SCM_RIGHTS) f(number);
            if (h->cmsg_type == type_of_pidfd) owned_number(number).reset();  // not asked for
        }
    }
    receives_ = false;
}

numbers_message::~numbers_message() {
    each([](int number) { owned_number(number).reset(); });
}

recv_numbers_result numbers_message::take(std::size_t bytes) noexcept {
    recv_numbers_result r;
    r.bytes = std::min(bytes, part_.iov_len);
    r.truncated_bytes = bytes - r.bytes;
    r.has_lost_numbers = (message_.msg_flags & MSG_CTRUNC) != 0;
    each([&](int number) {
        owned_number n(number);
        if (r.numbers != room_.size())
            room_[r.numbers++] = std::move(n);
        else
            r.has_lost_numbers = true;
    });
    return r;
}

stream_send_numbers_operation::stream_send_numbers_operation(stream_core& c,
                                                             std::span<const std::byte> from,
                                                             std::span<const int> numbers) noexcept
    : stream_operation(c, false, nullptr, 0, 1, c.options.write_timeout, "room to write"),
      message_(from, numbers) {
    request_.what = io_request::send_message_here;
    enough_ = [](io_operation& op, std::size_t count) noexcept {
        return static_cast<stream_send_numbers_operation&>(op).message_.advance(count);
    };
}

bool stream_send_numbers_operation::ready() noexcept {
    if (message_.is_refused()) return progress(-EINVAL);
    if (!take_turn()) return true;
    request_.data = message_.begin();
    return io_operation::ready();
}

transfer_result stream_send_numbers_operation::take(const waiter* w, wait_status how) noexcept {
    if (is_out_of_turn()) return {0, std::make_error_code(std::errc::operation_in_progress)};
    release();
    return outcome(w, how);
}

stream_recv_numbers_operation::stream_recv_numbers_operation(stream_core& c,
                                                             std::span<std::byte> into,
                                                             std::span<owned_number> room) noexcept
    : stream_operation(c, true, nullptr, 0, 1, c.options.read_timeout, "bytes to read"),
      message_(into, room) {
    request_.what = io_request::receive_message;
    request_.flags = MSG_CMSG_CLOEXEC;
}

bool stream_recv_numbers_operation::ready() noexcept {
    if (message_.is_refused()) return progress(-EINVAL);
    if (!take_turn()) return true;
    request_.data = message_.begin();
    return io_operation::ready();
}

result<recv_numbers_result> stream_recv_numbers_operation::take(const waiter* w,
                                                                wait_status how) noexcept {
    if (is_out_of_turn()) return failure(std::errc::operation_in_progress);
    release();
    const result<std::size_t> n = some(w, how);
    if (!n) return failure(n.error());
    return message_.take(*n);
}

message_send_numbers_operation::message_send_numbers_operation(const descriptor_ref& of,
                                                               std::span<const std::byte> from,
                                                               std::span<const int> numbers,
                                                               duration timeout) noexcept
    : io_operation(io_request::send_message_here, false, of, nullptr, 0, 1, timeout,
                   "room for a message"),
      message_(from, numbers) {
    enough_ = [](io_operation&, std::size_t) noexcept { return true; };  // it is whole
}

bool message_send_numbers_operation::ready() noexcept {
    if (message_.is_refused()) return progress(-EINVAL);
    request_.data = message_.begin();
    return io_operation::ready();
}

result<void> message_send_numbers_operation::take(const waiter* w, wait_status how) const noexcept {
    if (const transfer_result t = outcome(w, how); !t) return failure(t.error());
    return {};
}

message_recv_numbers_operation::message_recv_numbers_operation(const descriptor_ref& of,
                                                               std::span<std::byte> into,
                                                               std::span<owned_number> room,
                                                               duration timeout) noexcept
    : io_operation(io_request::receive_message, true, of, nullptr, 0, 1, timeout, "a message"),
      message_(into, room) {
    request_.flags = MSG_CMSG_CLOEXEC | MSG_TRUNC;
}

bool message_recv_numbers_operation::ready() noexcept {
    if (message_.is_refused()) return progress(-EINVAL);
    request_.data = message_.begin();
    return io_operation::ready();
}

result<recv_numbers_result> message_recv_numbers_operation::take(const waiter* w,
                                                                 wait_status how) noexcept {
    const transfer_result t = outcome(w, how);
    if (!t) return failure(t.error());
    const recv_numbers_result r = message_.take(t.bytes());
    if (r.bytes == 0 && r.numbers == 0 && !r.has_lost_numbers) return failure(errc::unexpected_eof);
    return r;
}

}  // namespace weft::detail
