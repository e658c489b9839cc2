// tls_context: what connections under TLS share: whom to trust, or who this is.
//
// Its one idea: it is made once, when the program begins, and only looked at from then on; copies
// are one and the same. Files are in PEM, and are read here and now.
//
//   auto trust = weft::tls_context::client().value();                  // what the system trusts
//   auto mine = weft::tls_context::server("chain.pem", "key.pem").value();
//
// TLS 1.2 and 1.3, without renegotiation. What else OpenSSL can do (certificates of clients, ALPN,
// a choice of ciphers) is asked of it, by native_handle(), before the first connection.
//
// Errors of the system come as they are. Those of TLS are in tls_category(), by OpenSSL's codes,
// and why a certificate was refused is in tls_trust_category(), by those of X509_V_ERR; each of
// these also compares equal to one of tls_refusal.
#pragma once

#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "weft/base/result.hpp"

struct ssl_ctx_st;

namespace weft {

const std::error_category& tls_category() noexcept;
const std::error_category& tls_trust_category() noexcept;

//   if (r.error() == weft::tls_refusal::other_host) ...
enum class tls_refusal {
    not_trusted = 1,  // nobody who is trusted has signed it, or not for now, or not for this
    other_host,       // it is another's
};
std::error_condition make_error_condition(tls_refusal) noexcept;

class tls_context {
public:
    // Trusts what those have signed whose certificates are in this file; without a name: whom the
    // system trusts.
    static result<tls_context> client(const std::string& trusted_file = {});
    // Is who the certificate says. With it, after it, is the chain up to who is trusted.
    static result<tls_context> server(const std::string& certificate_file,
                                      const std::string& key_file);

    ::ssl_ctx_st* native_handle() const noexcept { return context_.get(); }

private:
    explicit tls_context(std::shared_ptr<::ssl_ctx_st> c) noexcept : context_(std::move(c)) {}
    std::shared_ptr<::ssl_ctx_st> context_;
};

namespace detail {

// What OpenSSL has noted on this thread, the first of it; nothing is noted from now on.
std::error_code tls_error_noted() noexcept;

}  // namespace detail
}  // namespace weft

template <>
struct std::is_error_condition_enum<weft::tls_refusal> : std::true_type {};
