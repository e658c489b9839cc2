#include "weft/io/tls/tls_stream.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>

#include "weft/io/detail/c_string.hpp"
#include "weft/io/tls/detail/tls_kernel.hpp"
#include "weft/io/tls/detail/tls_rest.hpp"

namespace weft {
namespace detail {

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

}  // namespace detail

using detail::io_request;
using detail::tls_core;

// What OpenSSL reads and writes with.
namespace {

tls_core& core_of(BIO* b) noexcept { return *static_cast<tls_core*>(::BIO_get_data(b)); }

int read_for_tls(BIO* b, char* into, int bytes) {
    tls_core& core = core_of(b);
    ::BIO_clear_retry_flags(b);
    if (core.is_full()) {  // L4
        ::BIO_set_retry_read(b);
        return -1;
    }
    const std::int64_t n = core.call(io_request::receive, into, static_cast<std::size_t>(bytes));
    if (n == 0) core.cut = true;
    if (n == -EAGAIN) ::BIO_set_retry_read(b);
    return n >= 0 ? static_cast<int>(n) : -1;
}

// All of it, or an error.
int write_for_tls(BIO* b, const char* from, int bytes) {
    tls_core& core = core_of(b);
    ::BIO_clear_retry_flags(b);
    const auto all = static_cast<std::size_t>(bytes);
    if (core.is_change_of_keys(from)) [[unlikely]] {
        core.failed = std::make_error_code(std::errc::operation_not_supported);
        return -1;
    }
    std::size_t sent = 0;
    if (!core.gathers && core.flush()) {  // L2
        const std::int64_t n = core.send(from, all);
        if (n > 0) sent = static_cast<std::size_t>(n);
    }
    if (!core.gathers && core.system_error != 0 && core.system_error != EAGAIN) return -1;
    const auto* const rest = reinterpret_cast<const std::byte*>(from) + sent;
    if (sent == all) return bytes;
    core.rest_error = core.gathers ? 0 : EAGAIN;
    if (core.keep(rest, all - sent)) return bytes;
    core.system_error = ENOMEM;
    return -1;
}

long control_for_tls(BIO* b, int what, long how, void* data) {
    tls_core& core = core_of(b);
    switch (what) {
        case BIO_CTRL_EOF:
            return core.cut ? 1 : 0;
        case BIO_CTRL_FLUSH:
            core.type = detail::type_of_data;
            return 1;
        case BIO_CTRL_GET_KTLS_SEND:
            return core.in_kernel ? 1 : 0;
        case detail::bio_control_set_ktls:  // for sending, or for receiving
            return how != 0 && core.begin_in_kernel(data) ? 1 : 0;
        case detail::bio_control_set_type:
            core.type = static_cast<unsigned char>(how);
            return 1;
        default:
            return 0;
    }
}

// Created once, never destroyed. Null: no memory.
BIO_METHOD* socket_for_tls() noexcept {
    static BIO_METHOD* const the_one = [] {
        BIO_METHOD* const m = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft");
        if (m == nullptr) return m;
        ::BIO_meth_set_read(m, read_for_tls);
        ::BIO_meth_set_write(m, write_for_tls);
        ::BIO_meth_set_ctrl(m, control_for_tls);
        ::BIO_meth_set_create(m, [](BIO* b) {
            ::BIO_set_init(b, 1);
            return 1;
        });
        return m;
    }();
    return the_one;
}

// Sets what the peer must be. An address is not a name: it is looked up among the addresses of the
// certificate.
bool expect_host(SSL* ssl, const std::string& host) {
    if (ip_address::parse(host))
        return ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), host.c_str()) == 1;
    ::SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return ::SSL_set1_host(ssl, host.c_str()) == 1 &&
           ::SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                      const_cast<char*>(host.c_str())) == 1;
}

}  // namespace

tls_stream::tls_stream() noexcept = default;
tls_stream::tls_stream(tls_stream&&) noexcept = default;
tls_stream& tls_stream::operator=(tls_stream&&) noexcept = default;
tls_stream::~tls_stream() = default;
tls_stream::tls_stream(std::unique_ptr<tls_core> c) noexcept : core_(std::move(c)) {}

result<tls_stream> tls_stream::over(tcp_stream&& s, const tls_context& c) {
    auto core = std::make_unique<tls_core>(std::move(s));
    if (!core->of) return failure(errc::closed);
    ::ERR_clear_error();
    core->ssl.reset(::SSL_new(c.native_handle()));
    BIO_METHOD* const method = socket_for_tls();
    BIO* const b = method != nullptr ? ::BIO_new(method) : nullptr;
    if (core->ssl == nullptr || b == nullptr) {
        ::BIO_free(b);
        return failure(detail::tls_error_noted());
    }
    ::BIO_set_data(b, core.get());
    ::SSL_set_bio(core->ssl.get(), b, b);  // which owns it
    return tls_stream(std::move(core));
}

result<tls_stream> tls_stream::client(tcp_stream s, const tls_context& c, const std::string& host,
                                      const tls_session& session) {
    // OpenSSL takes an empty name for any name, and ignores what follows a zero byte.
    if (host.empty() || !detail::is_c_string(host)) return failure(std::errc::invalid_argument);
    // The peer of a resumed session is not checked again.
    if (session && (session.context_ != c.context_ || session.host_ != host))
        return failure(std::errc::invalid_argument);
    result<tls_stream> made = over(std::move(s), c);
    if (!made) return made;
    SSL* const ssl = made->native_handle();
    if (!expect_host(ssl, host)) {
        ::ERR_clear_error();
        return failure(std::errc::invalid_argument);
    }
    ::SSL_set_connect_state(ssl);
    if (session && ::SSL_set_session(ssl, session.of_.get()) != 1)
        return failure(detail::tls_error_noted());
    made->core_->context = c.context_;
    made->core_->host = host;
    return made;
}

result<tls_stream> tls_stream::server(tcp_stream s, const tls_context& c) {
    result<tls_stream> made = over(std::move(s), c);
    if (made) ::SSL_set_accept_state(made->native_handle());
    return made;
}

void tls_stream::close() noexcept {
    if (core_ != nullptr) core_->under.close();
}

tls_core& tls_stream::core() const noexcept { return detail::core_or_none<tls_core>(core_); }

tcp_stream& tls_stream::under() noexcept { return core().under; }

::ssl_st* tls_stream::native_handle() const noexcept { return core().ssl.get(); }

const char* tls_stream::version() const noexcept {
    const SSL* const ssl = native_handle();
    return ssl != nullptr ? ::SSL_get_version(ssl) : "";
}

std::string_view tls_stream::protocol() const noexcept {
    const SSL* const ssl = native_handle();
    const unsigned char* at = nullptr;
    unsigned bytes = 0;
    if (ssl != nullptr) ::SSL_get0_alpn_selected(ssl, &at, &bytes);
    return {reinterpret_cast<const char*>(at), bytes};
}

bool tls_stream::is_resumed() const noexcept {
    const SSL* const ssl = native_handle();
    return ssl != nullptr && ::SSL_session_reused(ssl) == 1;
}

bool tls_stream::sends_in_kernel() const noexcept { return core().in_kernel; }

tls_session tls_stream::session() const {
    tls_session s;
    tls_core& c = core();
    const std::lock_guard held(c.lock);  // L1
    if (!c.shaken || c.context == nullptr ||
        ::SSL_CTX_get_session_cache_mode(c.context.get()) == SSL_SESS_CACHE_OFF)
        return s;
    std::shared_ptr<SSL_SESSION> of(::SSL_get1_session(c.ssl.get()), ::SSL_SESSION_free);
    if (of == nullptr || ::SSL_SESSION_is_resumable(of.get()) != 1) return s;
    s.of_ = std::move(of);
    s.context_ = c.context;
    s.host_ = c.host;
    return s;
}

namespace detail {
namespace {

unsigned char bits_of(tls_operation::kind k) noexcept {
    if (k == tls_operation::read) return tls_core::reading;
    if (k == tls_operation::handshake) return tls_core::reading | tls_core::writing;
    return tls_core::writing;
}

duration timeout_of(const tls_core& c, tls_operation::kind k) noexcept {
    const bool reads = (bits_of(k) & tls_core::reading) != 0;
    return reads ? c.under.options().read_timeout : c.under.options().write_timeout;
}

}  // namespace

// Why a step must not be made.
std::error_code tls_core::refusal(tls_operation::kind k) const noexcept {
    if (!of.is_open()) return errc::closed;
    if (failed) return failed;
    if (k != tls_operation::handshake && !shaken)
        return std::make_error_code(std::errc::not_connected);
    if (k == tls_operation::write && (::SSL_get_shutdown(ssl.get()) & SSL_SENT_SHUTDOWN) != 0)
        return std::make_error_code(std::errc::broken_pipe);
    return {};
}

// Why a step has failed.
std::error_code tls_core::why_not(int kind_of_error) noexcept {
    const std::error_code noted = tls_error_noted();
    if (!of.is_open()) return errc::closed;
    if (kind_of_error != SSL_ERROR_SSL) {
        if (failed) return failed;
        if (system_error == 0) return errc::unexpected_eof;
        return {system_error, std::system_category()};
    }
    const long refused = ::SSL_get_verify_result(ssl.get());
    if (!shaken && refused != X509_V_OK)
        failed = {static_cast<int>(refused), tls_trust_category()};
    else if (cut)
        failed = errc::unexpected_eof;
    else
        failed = noted;
    return failed;
}

tls_operation::tls_operation(tls_core& c, kind k, const std::byte* data, std::size_t bytes,
                             bool all) noexcept
    : io_operation({}, 1, timeout_of(c, k), "TLS"),
      core_(&c),
      data_(const_cast<std::byte*>(data)),
      left_(bytes),
      kind_(k),
      all_(all),
      nothing_((k == read || k == write) && bytes == 0) {
    request_.what = io_request::step;
    request_.of = c.of;
    enough_ = step_again;
}

tls_operation::tls_operation(tls_operation&& other) noexcept
    : io_operation(std::move(other)),
      core_(other.core_),
      data_(other.data_),
      left_(other.left_),
      kind_(other.kind_),
      all_(other.all_),
      nothing_(other.nothing_) {}

bool tls_operation::take_turn() noexcept {
    const unsigned char bits = bits_of(kind_);
    unsigned char now = core_->busy.load(std::memory_order_relaxed);
    do {
        if ((now & bits) != 0) return false;
        // Acquire: pairs with release() of the operation before.
    } while (!core_->busy.compare_exchange_weak(now, static_cast<unsigned char>(now | bits),
                                                std::memory_order_acquire,
                                                std::memory_order_relaxed));
    return held_ = true;
}

void tls_operation::release() noexcept {
    if (!std::exchange(held_, false)) return;
    core_->busy.fetch_and(static_cast<unsigned char>(~bits_of(kind_)), std::memory_order_release);
    // It ended early and may leave a rest: a waiting reader makes a step, and then waits for room
    // too. L3
    if (kind_ != read && !over_)
        core_->of.entry().notify(core_->of.generation(), io_entry::readable);
}

bool tls_operation::ready() noexcept {
    // Before a turn is taken: all empty streams share one core.
    if (!core_->of) return end(std::make_error_code(std::errc::bad_file_descriptor));
    if (!take_turn()) return end(std::make_error_code(std::errc::operation_in_progress));
    return step();
}

bool tls_operation::again(waiter& w) noexcept {
    if (request_.also_reads) cancel(w);  // woken from one queue, and still in the other
    return io_operation::again(w);
}

// The descriptor is ready for what the last step has waited for.
bool tls_operation::step_again(io_operation& op, std::size_t) noexcept {
    return static_cast<tls_operation&>(op).step();
}

bool tls_operation::end(std::error_code e) noexcept {
    ::ERR_clear_error();
    error_ = e;
    return over_ = true;
}

// True: there is no more to do. False: the request says what to wait for.
bool tls_operation::step() noexcept {
    const std::lock_guard held(core_->lock);  // L1
    if (const std::error_code e = core_->refusal(kind_)) return end(e);
    if (nothing_) return end({});
    for (;;) {
        if (!core_->flush() && kind_ != read) {
            if (core_->rest_error == EAGAIN) return unready(true);
            return end(core_->why_not(SSL_ERROR_SYSCALL));
        }
        if (enough_is_done_) {
            if (core_->in_kernel && kind_ != read && !core_->has_room())
                return unready(true);  // L6
            return end({});
        }
        const int how = call();
        if (how == SSL_ERROR_ZERO_RETURN)
            return end(kind_ == read ? std::error_code() : errc::unexpected_eof);
        if (how == SSL_ERROR_WANT_READ) {
            // What the peer waits for goes first.
            if (kind_ != read && !core_->rest.empty()) continue;
            return unready(core_->waits_for_room());
        }
        if (how != SSL_ERROR_NONE) {
            const std::error_code e = core_->why_not(how);
            static_cast<void>(core_->flush());  // the alert that reports the error
            return end(e);
        }
    }
}

// False: the request says what to wait for. L3
bool tls_operation::unready(bool for_room) noexcept {
    request_.reads = !for_room;
    request_.also_reads = kind_ == read && !request_.reads && !core_->is_full();
    request_.second = &second_;
    return false;
}

// One call of OpenSSL; returns its SSL_ERROR code.
int tls_operation::call() noexcept {
    constexpr std::size_t record_bytes = 16384;
    SSL* const ssl = core_->ssl.get();
    ::ERR_clear_error();
    std::size_t n = 0;
    int r = 0;
    switch (kind_) {
        case handshake:
            // All that goes one way before an answer, with the tickets after it, is one send.
            core_->gathers = true;
            r = ::SSL_do_handshake(ssl);
            core_->gathers = false;
            enough_is_done_ = core_->shaken = r == 1;
            break;
        case shutdown:
            // Zero: the peer has not sent its own yet, which it need not.
            r = (::SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN) != 0 || ::SSL_shutdown(ssl) >= 0;
            enough_is_done_ = r == 1;
            break;
        case read:
            r = ::SSL_read_ex(ssl, data_, left_, &n);
            enough_is_done_ = r == 1 && (!all_ || n == left_);
            break;
        case write:
            r = ::SSL_write_ex(ssl, data_, std::min(left_, record_bytes), &n);
            enough_is_done_ = r == 1 && n == left_;
            break;
    }
    moved_ += n;
    data_ += n;
    left_ -= n;
    return r == 1 ? SSL_ERROR_NONE : ::SSL_get_error(ssl, r);
}

transfer_result tls_operation::taken(const waiter* w, wait_status how) noexcept {
    release();
    if (over_) return {moved_, error_};
    return {moved_, outcome(w, how).error()};
}

}  // namespace detail
}  // namespace weft
