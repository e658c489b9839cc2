// tls_core: a TLS connection over a socket, as a tls_stream and its operations share it: OpenSSL's
// object, the bytes that it has written and the socket has not taken, and which directions are
// busy.
//
// Design: OpenSSL never waits. What it reads and writes with (tls_stream.cpp) tries the socket
// once, and an operation (tls_operation.cpp) repeats its step when the socket is ready for it.
//
// Invariants:
// L1  OpenSSL's object and what belongs to it are used under the lock, and nothing waits under it
// L2  what OpenSSL has written is sent in its order: nothing else is sent while there is a rest
// L3  while there is a rest, a read or a write waits until the socket has room for it
// L4  while the rest is full nothing is received, so a peer that asks for answers and reads none of
//     them is not served; what it has sent before is one buffer, and is answered within 64 KiB
// L5  the kernel begins to make the records while there is no rest; from then on the rest is pieces
//     of a type, before that bytes
// L6  the kernel may keep a part of the last record that it took, and drops it at a close: a write
//     is done when the socket has room again, and so for that part
//
// Model: none, one lock guards what is shared, and a bit is taken in one operation.
#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>

#include "weft/io/tls/detail/tls_kernel.hpp"
#include "weft/io/tls/detail/tls_rest.hpp"
#include "weft/io/tls/tls_stream.hpp"

namespace weft::detail {

struct tls_core {
    explicit tls_core(tcp_stream&& s = {}) noexcept
        : under(std::move(s)), of(descriptor_ref::find(under.native_handle())) {}

    tcp_stream under;
    const descriptor_ref of;
    static constexpr std::size_t most_rest_bytes = 24 << 10;
    static constexpr unsigned char reading = 1;
    static constexpr unsigned char writing = 2;
    atomic<unsigned char> busy{0};  // bits: one reads, one writes; a handshake is both
    std::mutex lock;                // guards what follows
    std::unique_ptr<SSL, decltype(&::SSL_free)> ssl{nullptr, ::SSL_free};
    tls_rest rest;
    int system_error = 0;               // of the last call; zero: none
    int rest_error = 0;                 // of the last call that sent none of the rest
    std::shared_ptr<SSL_CTX> context;   // a client's, and
    std::string host;                   // its peer's name: they identify the session
    bool shaken = false;                // the handshake is done
    bool cut = false;                   // the socket has reached its end
    bool in_kernel = false;             // the kernel makes the records that are sent
    bool gathers = false;               // during a call: what it writes goes into the rest
    unsigned char type = type_of_data;  // of what is written next, to the kernel
    std::error_code failed;             // the error of every later operation

    std::int64_t call(io_request::kind what, void* data, std::size_t bytes) noexcept {
        io_request r;
        r.what = what;
        r.reads = what == io_request::receive;
        r.of = of;
        r.data = data;
        r.bytes = bytes;
        const std::int64_t n = r.try_now();
        system_error = n >= 0 ? 0 : n == io_request::was_closed ? EBADF : static_cast<int>(-n);
        return n;
    }

    // False: a rest is left; system_error is EAGAIN, or the reason.
    bool flush() noexcept {
        while (!rest.empty()) {
            const std::int64_t n =
                in_kernel ? send_first_piece() : call(io_request::send, rest.data(), rest.size());
            if (n < 0) {
                rest_error = system_error;
                return false;
            }
            if (in_kernel)
                rest.drop_of_first(static_cast<std::size_t>(n));
            else
                rest.drop(static_cast<std::size_t>(n));
        }
        return true;
    }
    std::int64_t send_first_piece() noexcept {
        const tls_rest::piece first = rest.first();
        return send_typed(first.type, rest.first_contents(), first.bytes);
    }
    // The kernel makes records of it. For a short call no rule is proven (io_entry.hpp).
    std::int64_t send_typed(unsigned char as, const void* data, std::size_t bytes) noexcept {
        typed_message m(as, data, bytes);
        return call(io_request::send_message, &m.header, 0);
    }
    std::int64_t send(const void* data, std::size_t bytes) noexcept {
        if (in_kernel) [[unlikely]]
            return send_typed(type, data, bytes);
        return call(io_request::send, const_cast<void*>(data), bytes);
    }
    bool keep(const std::byte* from, std::size_t count) noexcept {
        return in_kernel ? rest.append(type, from, count) : rest.append(from, count);
    }
    // L6
    bool has_room() noexcept {
        io_request r;
        r.reads = false;
        r.flags = POLLOUT;
        r.of = of;
        return r.try_now() != -EAGAIN;
    }
    // The rest can be sent as soon as the socket has room. (If not, a write will return the error.)
    bool waits_for_room() const noexcept { return !rest.empty() && rest_error == EAGAIN; }
    // More than the record that a write leaves: otherwise two peers that write and read would both
    // stop.
    bool is_full() const noexcept { return rest.size() > most_rest_bytes && waits_for_room(); }

    // OpenSSL offers its keys. L5
    bool begin_in_kernel(const void* keys) noexcept {
        if (!in_kernel && flush() && give_keys(of, keys)) return in_kernel = true;
        return false;
    }
    // The kernel cannot change its keys, so a change of keys must not be announced.
    bool is_change_of_keys(const char* from) const noexcept {
        return in_kernel && type == SSL3_RT_HANDSHAKE && shaken && *from == SSL3_MT_KEY_UPDATE;
    }

    std::error_code refusal(tls_operation::kind k) const noexcept;
    std::error_code why_not(int kind_of_error) noexcept;
};

}  // namespace weft::detail
