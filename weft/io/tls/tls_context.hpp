// tls_context: what TLS connections share: which issuers to trust, or which certificate to present.
//
// Design: a context is made once, when the program starts, and is only read from then on; copies
// share it. Files are in PEM, and are read at once.
//
// Limits: TLS 1.2 and 1.3, without renegotiation. Other features of OpenSSL (a choice of ciphers)
// are set through native_handle(), before the first connection.
//
//   auto trust = weft::tls_context::client().value();                  // what the system trusts
//   auto mine = weft::tls_context::server("chain.pem", "key.pem").value();
//
// Everything else that is negotiated, or asked for, is in options:
//
//   auto web = weft::tls_context::client({}, {.protocols = {"h2", "http/1.1"}}).value();
//   auto inner = weft::tls_context::server("chain.pem", "key.pem", {
//       .least = weft::tls_version::tls_1_3,
//       .clients = weft::tls_clients::required, .clients_trusted_file = "staff.pem"}).value();
//   auto both = weft::tls_context::server("a.pem", "a.key", {.hosts = {{"b.test", b}}}).value();
//
// Errors of the system are returned as they are. Those of TLS are in tls_category(), with OpenSSL's
// codes, and the reason why a certificate was refused is in tls_trust_category(), with the codes of
// X509_V_ERR; each of these also compares equal to one of tls_verify_error.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weft/base/result.hpp"

struct ssl_ctx_st;

namespace weft {

const std::error_category& tls_category() noexcept;
const std::error_category& tls_trust_category() noexcept;

//   if (r.error() == weft::tls_verify_error::hostname_mismatch) ...
enum class tls_verify_error {
    untrusted = 1,      // no trusted issuer has signed it, or not for now, or not for this use
    hostname_mismatch,  // it is another host's
};
std::error_condition make_error_condition(tls_verify_error) noexcept;

enum class tls_version { tls_1_2, tls_1_3 };

// What a server wants to know of its clients.
enum class tls_clients {
    unknown,   // nothing
    asked,     // a certificate, if there is one; one that is not trusted ends the handshake
    required,  // a trusted certificate
};

// How a client proves itself, and which servers it trusts.
struct tls_client_options {
    // ALPN: offered, the preferred one first; each of 1 to 255 bytes. See tls_stream::protocol().
    std::vector<std::string> protocols = {};
    tls_version least = tls_version::tls_1_2;
    // The client's own certificate, for a server that asks; followed by its chain. Both or neither.
    std::string certificate_file = {};
    std::string key_file = {};
    // Whether its streams have a tls_session, and can be given one.
    bool resumes = true;
    // kTLS: if the kernel, OpenSSL and the cipher support it, the kernel makes the records that are
    // sent; otherwise this does nothing. See tls_stream::sends_in_kernel(). OpenSSL decrypts what
    // is received. The kernel cannot change its keys: with TLS 1.3, if a peer asks for other keys
    // (few do, and after gigabytes), the connection fails with operation_not_supported.
    bool in_kernel = false;
};

struct tls_server_options;

class tls_context {
public:
    // Errors of both: a file cannot be read, or is not of its kind, from the system or in
    // tls_category(); std::errc::invalid_argument: an option is not as described above, or the name
    // of a file or host has a zero byte in it. Reads files and so blocks the thread; does not
    // suspend.

    // Trusts the issuers whose certificates are in this file; without a name: those that the system
    // trusts.
    static result<tls_context> client(const std::string& trusted_file = {},
                                      const tls_client_options& = {});
    // The certificate of this server; the file has its chain, up to a trusted issuer, after it.
    static result<tls_context> server(const std::string& certificate_file,
                                      const std::string& key_file);
    static result<tls_context> server(const std::string& certificate_file,
                                      const std::string& key_file, const tls_server_options&);

    ::ssl_ctx_st* native_handle() const noexcept { return context_.get(); }

private:
    friend class tls_stream;

    explicit tls_context(std::shared_ptr<::ssl_ctx_st> c) noexcept : context_(std::move(c)) {}
    std::shared_ptr<::ssl_ctx_st> context_;
};

// How a server proves itself, and which clients it trusts.
struct tls_server_options {
    // ALPN: the first of these that the client offers is chosen. If it offers only others, the
    // handshake ends (no_application_protocol); if it offers none, there is none.
    std::vector<std::string> protocols = {};
    tls_version least = tls_version::tls_1_2;
    tls_clients clients = tls_clients::unknown;
    std::string clients_trusted_file = {};  // their trusted issuers; needed to ask, and only then
    // Whether a client may return without a full handshake, as long as the context exists.
    bool resumes = true;
    bool in_kernel = false;  // as a client's
    // By the name that a client asks for (SNI; letter case is ignored, no wildcards): the server
    // context of its connection, with all options of that one except its `hosts`. Other names, and
    // none, get this context.
    std::map<std::string, tls_context> hosts = {};
};

namespace detail {

// The first error that OpenSSL has noted on this thread; clears them all.
std::error_code tls_error_noted() noexcept;

}  // namespace detail
}  // namespace weft

template <>
struct std::is_error_condition_enum<weft::tls_verify_error> : std::true_type {};
