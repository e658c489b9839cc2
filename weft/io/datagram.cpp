#include "weft/io/datagram.hpp"

#include <algorithm>
#include <span>

namespace weft::detail {

datagram_operation::datagram_operation(const descriptor_ref& of, io_request::kind what,
                                       std::span<std::byte> part, duration timeout,
                                       const char* waits_for) noexcept
    : io_operation({}, 0, timeout, waits_for), part_{part.data(), part.size()} {
    request_.what = what;
    request_.reads = what == io_request::receive_message;
    request_.of = of;
    // The result is then the length of the datagram, and not of the part that fit.
    if (request_.reads) request_.flags = MSG_TRUNC;
}

// From now on the operation stays at its address.
bool datagram_operation::ready() noexcept {
    if (named_) {
        message_.msg_name = other_.data();
        message_.msg_namelen = request_.reads ? endpoint::capacity : other_.size();
    }
    message_.msg_iov = &part_;
    message_.msg_iovlen = 1;
    request_.data = &message_;
    return io_operation::ready();
}

result<recv_result> datagram_operation::taken(const waiter* w, wait_status how) const noexcept {
    const transfer_result t = outcome(w, how);
    if (!t) return failure(t.error());
    const std::size_t bytes = std::min(t.bytes(), part_.iov_len);
    return recv_result{bytes, t.bytes() - bytes};
}

result<void> datagram_send_operation::take(const waiter* w, wait_status how) const noexcept {
    if (const transfer_result t = outcome(w, how); !t) return failure(t.error());
    return {};
}

result<recv_from_result> datagram_recv_from_operation::take(const waiter* w,
                                                            wait_status how) const noexcept {
    const result<recv_result> r = taken(w, how);
    if (!r) return failure(r.error());
    recv_from_result d{*r, other_};
    d.from.resize(std::min(name_bytes(), endpoint::capacity));
    return d;
}

// With no datagrams there is nothing to wait for.
bool datagram_recv_many_operation::ready() noexcept {
    if (batch_.all.empty() && request_.of.is_open()) return found_nothing_to_do();
    request_.data = &batch_;
    return io_operation::ready();
}

bool datagram_send_many_operation::ready() noexcept {
    if (batch_.left.empty() && request_.of.is_open()) return found_nothing_to_do();
    request_.data = &batch_;
    return io_operation::ready();
}

}  // namespace weft::detail
