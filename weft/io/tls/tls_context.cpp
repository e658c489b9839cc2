#include "weft/io/tls/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace weft {
namespace {

class refusal_category final : public std::error_category {
    const char* name() const noexcept override { return "tls_refusal"; }
    std::string message(int e) const override {
        return e == static_cast<int>(tls_refusal::other_host) ? "the certificate is another host's"
                                                              : "the certificate is not trusted";
    }
};

class trust_category final : public std::error_category {
    const char* name() const noexcept override { return "tls_trust"; }
    std::string message(int e) const override { return ::X509_verify_cert_error_string(e); }
    std::error_condition default_error_condition(int e) const noexcept override {
        const bool other = e == X509_V_ERR_HOSTNAME_MISMATCH || e == X509_V_ERR_IP_ADDRESS_MISMATCH;
        return other ? tls_refusal::other_host : tls_refusal::not_trusted;
    }
};

class openssl_category final : public std::error_category {
    const char* name() const noexcept override { return "tls"; }
    std::string message(int e) const override {
        char text[256];
        ::ERR_error_string_n(static_cast<unsigned>(e), text, sizeof text);
        return text;
    }
};

// With what both sides have in common. Null: OpenSSL has noted why.
std::shared_ptr<SSL_CTX> fresh_context(const SSL_METHOD* of) {
    ::ERR_clear_error();
    SSL_CTX* const c = ::SSL_CTX_new(of);
    if (c == nullptr) return nullptr;
    std::shared_ptr<SSL_CTX> owned(c, ::SSL_CTX_free);
    ::SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
    ::SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION);
    ::SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);  // who is idle has none
    ::SSL_CTX_set_read_ahead(c, 1);                   // a record and what follows it by one call
    return owned;
}

}  // namespace

const std::error_category& tls_category() noexcept {
    static const openssl_category the_one;
    return the_one;
}

const std::error_category& tls_trust_category() noexcept {
    static const trust_category the_one;
    return the_one;
}

std::error_condition make_error_condition(tls_refusal e) noexcept {
    static const refusal_category the_one;
    return {static_cast<int>(e), the_one};
}

std::error_code detail::tls_error_noted() noexcept {
    const unsigned long e = ::ERR_get_error();
    ::ERR_clear_error();
    if (e == 0) return std::make_error_code(std::errc::protocol_error);
    if (ERR_SYSTEM_ERROR(e)) return {ERR_GET_REASON(e), std::system_category()};
    return {static_cast<int>(e), tls_category()};
}

result<tls_context> tls_context::client(const std::string& trusted_file) {
    std::shared_ptr<SSL_CTX> c = fresh_context(::TLS_client_method());
    if (c == nullptr) return failure(detail::tls_error_noted());
    ::SSL_CTX_set_verify(c.get(), SSL_VERIFY_PEER, nullptr);
    const int r = trusted_file.empty() ? ::SSL_CTX_set_default_verify_paths(c.get())
                                       : ::SSL_CTX_load_verify_file(c.get(), trusted_file.c_str());
    if (r != 1) return failure(detail::tls_error_noted());
    ::ERR_clear_error();
    return tls_context(std::move(c));
}

result<tls_context> tls_context::server(const std::string& certificate_file,
                                        const std::string& key_file) {
    std::shared_ptr<SSL_CTX> c = fresh_context(::TLS_server_method());
    if (c == nullptr ||
        ::SSL_CTX_use_certificate_chain_file(c.get(), certificate_file.c_str()) != 1 ||
        ::SSL_CTX_use_PrivateKey_file(c.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
        ::SSL_CTX_check_private_key(c.get()) != 1)
        return failure(detail::tls_error_noted());
    ::ERR_clear_error();
    return tls_context(std::move(c));
}

}  // namespace weft
