#include "weft/io/tls/tls_stream.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <memory>
#include <mutex>

#include "weft/io/detail/c_string.hpp"
#include "weft/io/tls/detail/tls_core.hpp"

namespace weft {

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

}  // namespace weft
