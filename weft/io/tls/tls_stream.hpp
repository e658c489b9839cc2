// tls_stream: a tcp_stream that no third side can read or change: TLS, by OpenSSL. It is in the
// target weft::tls, which exists if OpenSSL is there, and not in weft::weft.
//
// Design: a step of TLS never waits. It processes what has come, or reports that it has to read;
// what it writes and the socket has no room for is stored here until there is room. So an operation
// is made like one on a socket (io_operation.hpp): a step, a wait for the descriptor, a step; with
// every driver, in the turn of the waiter.
//
//      read      a step <---- records ----- socket       wait to read, if a record is not whole;
//                                                        and to write, while there is a rest
//      write     a step --- record --> rest --> socket   wait to write, while there is a rest
//
//      handshake    before all else (else std::errc::not_connected)           result<void>
//      read         some: at least one byte; zero: the peer has ended         result<size_t>
//      read_exact   all of the buffer, or unexpected_eof                      transfer_result
//      write_all    all of it                                                 transfer_result
//      shutdown     announces the end to the peer, which may still write      result<void>
//
// Limits: one reader and one writer at a time; a second one of a kind gets operation_in_progress at
// once. Time limits are the options of the tcp_stream below, except its min_read_bytes_per_second;
// a handshake uses the limit of reads.
//
// The end is what the peer has declared the end. A connection that ends otherwise was cut off,
// maybe by an attacker: unexpected_eof, and never zero. After an error of TLS every operation
// returns the same error. A stop or a deadline costs nothing: a write that it ends reports how much
// was accepted, and the part of that which is still stored here is sent before the next write's, or
// by a read that waits.
//
// A peer may ask for answers of TLS itself (updates of keys). While the socket has no room for more
// than 24 KiB of what is to be sent, nothing is received: at most 64 KiB are stored here. A
// transfer of nothing, read({}) or write_all({}), is done at once.
//
// The kernel may make the records (tls_client_options::in_kernel). A write is then done when the
// socket has room for more: until then the kernel may have a part of a record, which it would drop
// at a close.
//
//   auto trust = weft::tls_context::client().value();
//   auto s = weft::tls_stream::client(weft::tcp_stream::connect("example.org:443").value(),
//                                     trust, "example.org").value();
//   if (auto r = s.handshake(); !r) return r.error();       // or co_await s.async_handshake()
//   auto sent = s.write_all(weft::bytes_of("GET / HTTP/1.0\r\n\r\n"));
//   if (!sent) return sent.error();
//   while (auto n = s.read(buffer).value_or(0)) ...
//
// Model: none, one lock guards what is shared, and a bit is taken in one operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/io/tcp_stream.hpp"
#include "weft/io/tls/tls_context.hpp"

struct ssl_st;
struct ssl_session_st;

namespace weft {
namespace detail {

struct tls_core;

// One step after the other, until there is no more to do.
class tls_operation : public io_operation {
public:
    enum kind : std::uint8_t { handshake, read, write, shutdown };

    tls_operation(tls_operation&& other) noexcept;  // before it is awaited
    ~tls_operation() { release(); }

    bool ready() noexcept;
    bool again(waiter& w) noexcept;

protected:
    // `all`: for a read, whether it goes on until the buffer is full.
    tls_operation(tls_core& c, kind k, const std::byte* data, std::size_t bytes, bool all) noexcept;

    transfer_result taken(const waiter* w, wait_status how) noexcept;

private:
    static bool step_again(io_operation& op, std::size_t) noexcept;
    bool take_turn() noexcept;
    void release() noexcept;
    bool step() noexcept;
    bool unready(bool for_room) noexcept;
    int call() noexcept;
    bool end(std::error_code) noexcept;

    tls_core* core_;
    std::byte* data_;
    std::size_t left_;
    std::size_t moved_ = 0;
    std::error_code error_;  // if it is done
    kind kind_;
    bool all_;
    bool nothing_;  // was asked for
    bool enough_is_done_ = false;
    bool over_ = false;
    bool held_ = false;
    io_wait_node second_;  // among the readers, if it waits to write or to read
};

class tls_read_operation final : public tls_operation {
public:
    tls_read_operation(tls_core& c, std::span<std::byte> into) noexcept
        : tls_operation(c, read, into.data(), into.size(), false) {}
    result<std::size_t> take(const waiter* w, wait_status how) noexcept {
        const transfer_result t = taken(w, how);
        if (!t) return failure(t.error());
        return t.bytes();
    }
};

class tls_read_exact_operation final : public tls_operation {
public:
    tls_read_exact_operation(tls_core& c, std::span<std::byte> into) noexcept
        : tls_operation(c, read, into.data(), into.size(), true), all_(into.size()) {}
    transfer_result take(const waiter* w, wait_status how) noexcept {
        return all_or_eof(taken(w, how), all_);
    }

private:
    std::size_t all_;
};

class tls_write_all_operation final : public tls_operation {
public:
    tls_write_all_operation(tls_core& c, std::span<const std::byte> from) noexcept
        : tls_operation(c, write, from.data(), from.size(), true) {}
    transfer_result take(const waiter* w, wait_status how) noexcept { return taken(w, how); }
};

class tls_turn_operation final : public tls_operation {
public:
    tls_turn_operation(tls_core& c, kind k) noexcept : tls_operation(c, k, nullptr, 0, true) {}
    result<void> take(const waiter* w, wait_status how) noexcept {
        if (const transfer_result t = taken(w, how); !t) return failure(t.error());
        return {};
    }
};

}  // namespace detail

// What a client and a server have agreed on, to be resumed by the client's next connection to the
// same host: that saves the certificates and their checking, not a round trip. Can be copied.
class tls_session {
public:
    tls_session() noexcept = default;  // none
    explicit operator bool() const noexcept { return of_ != nullptr; }

private:
    friend class tls_stream;

    std::shared_ptr<::ssl_session_st> of_;
    std::shared_ptr<::ssl_ctx_st> context_;  // the one that has checked the peer
    std::string host_;                       // the name that was asked for
};

class tls_stream {
public:
    tls_stream() noexcept;  // none
    tls_stream(tls_stream&&) noexcept;
    tls_stream& operator=(tls_stream&&) noexcept;
    ~tls_stream();

    // `host`, a name or an address, is what the peer must be, and which of its names is meant.
    // invalid_argument: it is neither. A session that is not empty is resumed if the server agrees;
    // invalid_argument: it belongs to another context or another host.
    static result<tls_stream> client(tcp_stream over, const tls_context&, const std::string& host,
                                     const tls_session& = {});
    static result<tls_stream> server(tcp_stream over, const tls_context&);

    explicit operator bool() const noexcept { return core_ != nullptr; }

    [[nodiscard]] detail::tls_turn_operation async_handshake() noexcept {
        return {core(), detail::tls_operation::handshake};
    }
    [[nodiscard]] detail::tls_read_operation async_read(std::span<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::tls_read_exact_operation async_read_exact(
        std::span<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::tls_write_all_operation async_write_all(
        std::span<const std::byte> from) noexcept {
        return {core(), from};
    }
    [[nodiscard]] detail::tls_turn_operation async_shutdown() noexcept {
        return {core(), detail::tls_operation::shutdown};
    }

    result<void> handshake(std::source_location caller = std::source_location::current()) {
        auto op = async_handshake();
        return detail::block_for(op, caller);
    }
    result<std::size_t> read(std::span<std::byte> into,
                             std::source_location caller = std::source_location::current()) {
        auto op = async_read(into);
        return detail::block_for(op, caller);
    }
    transfer_result read_exact(std::span<std::byte> into,
                               std::source_location caller = std::source_location::current()) {
        auto op = async_read_exact(into);
        return detail::block_for(op, caller);
    }
    transfer_result write_all(std::span<const std::byte> from,
                              std::source_location caller = std::source_location::current()) {
        auto op = async_write_all(from);
        return detail::block_for(op, caller);
    }
    result<void> shutdown(std::source_location caller = std::source_location::current()) {
        auto op = async_shutdown();
        return detail::block_for(op, caller);
    }

    // Closes it for all callers, without a message to the peer. Any thread.
    void close() noexcept;
    // For its options and its endpoints; not to be read or written.
    tcp_stream& under() noexcept;
    // "TLSv1.3", after the handshake; "" for an empty stream.
    const char* version() const noexcept;
    // What ALPN has agreed on, after the handshake; "": nothing.
    std::string_view protocol() const noexcept;
    // Whether the handshake has resumed a session.
    bool is_resumed() const noexcept;
    // Whether the kernel makes the records that are sent (tls_client_options::in_kernel), after the
    // handshake.
    bool sends_in_kernel() const noexcept;
    // A client's session, for its next stream; empty if none can be resumed. With TLS 1.3 it comes
    // after the handshake: ask after a read that has returned data, and again for each connection,
    // so that an observer cannot tell that two connections are one client's.
    tls_session session() const;
    // Not while an operation is under way. Null for an empty stream.
    ::ssl_st* native_handle() const noexcept;

private:
    explicit tls_stream(std::unique_ptr<detail::tls_core> c) noexcept;
    static result<tls_stream> over(tcp_stream&& s, const tls_context& c);
    detail::tls_core& core() const noexcept;

    std::unique_ptr<detail::tls_core> core_;
};

}  // namespace weft
