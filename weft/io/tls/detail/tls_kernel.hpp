// tls_kernel: the kernel makes the records of what is sent on a socket (kTLS).
//
// Design: once the kernel has the keys, the contents of records are sent. They are data; anything
// else is a message with its type in a control message.
//
//      OpenSSL ---- "close_notify", alert ----> message: type 21 | 2 bytes ---> kernel ---> record
//
// A kernel supports some ciphers, or none; then nothing changes. The keys cannot be taken back, nor
// replaced (Linux before 6.14).
//
//   if (detail::give_keys(of, keys)) ...
//   detail::typed_message m(SSL3_RT_ALERT, data, bytes);   // for sendmsg: &m.header
//
// Model: none, it is not shared.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>

#include "weft/io/detail/descriptor.hpp"

namespace weft::detail {

// The control commands of a BIO: OpenSSL passes the keys with the first, and with the second the
// type of what it writes, until it flushes. They are in its internal/bio.h; bio.h has reserved
// them.
constexpr int bio_control_set_ktls = 72;
constexpr int bio_control_set_type = 74;

constexpr unsigned char type_of_data = 23;

// `keys` begins with a tls_crypto_info, and is as long as its cipher requires. False: the kernel
// does not have them, whatever the reason.
bool give_keys(const descriptor_ref& to, const void* keys) noexcept;

// One run of bytes of a type.
struct typed_message {
    typed_message(unsigned char type, const void* data, std::size_t bytes) noexcept;
    typed_message(const typed_message&) = delete;

    ::msghdr header{};

private:
    ::iovec contents_;
    alignas(::cmsghdr) unsigned char control_[CMSG_SPACE(1)] = {};
};

}  // namespace weft::detail
