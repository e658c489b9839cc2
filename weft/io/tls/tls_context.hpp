// tls_context: what connections under TLS share: whom to trust, or who this is.
//
// Its one idea: it is made once, when the program begins, and only looked at from then on; copies
// are one and the same. Files are in PEM, and are read here and now.
//
//   auto trust = weft::tls_context::client().value();                  // what the system trusts
//   auto mine = weft::tls_context::server("chain.pem", "key.pem").value();
//
// What else is agreed on, or asked for, is in options:
//
//   auto web = weft::tls_context::client({}, {.protocols = {"h2", "http/1.1"}}).value();
//   auto inner = weft::tls_context::server("chain.pem", "key.pem", {
//       .least = weft::tls_version::tls_1_3,
//       .clients = weft::tls_clients::required, .clients_trusted_file = "staff.pem"}).value();
//   auto both = weft::tls_context::server("a.pem", "a.key", {.hosts = {{"b.test", b}}}).value();
//
// TLS 1.2 and 1.3, without renegotiation. What else OpenSSL can do (a choice of ciphers) is asked
// of it, by native_handle(), before the first connection.
//
// Errors of the system come as they are. Those of TLS are in tls_category(), by OpenSSL's codes,
// and why a certificate was refused is in tls_trust_category(), by those of X509_V_ERR; each of
// these also compares equal to one of tls_refusal.
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

//   if (r.error() == weft::tls_refusal::other_host) ...
enum class tls_refusal {
    not_trusted = 1,  // nobody who is trusted has signed it, or not for now, or not for this
    other_host,       // it is another's
};
std::error_condition make_error_condition(tls_refusal) noexcept;

enum class tls_version { tls_1_2, tls_1_3 };

// What a server wants to know of its clients.
enum class tls_clients {
    unknown,   // nothing
    asked,     // a certificate, if there is one; one that is not trusted ends the handshake
    required,  // a certificate that is trusted
};

struct tls_client_options {
    // ALPN: offered, the preferred first; each of 1 to 255 bytes. See tls_stream::protocol().
    std::vector<std::string> protocols = {};
    tls_version least = tls_version::tls_1_2;
    // The client's own, for a server that asks; with the chain after it. Both or neither.
    std::string certificate_file = {};
    std::string key_file = {};
    // Whether a tls_session can be had of its streams, and given to them.
    bool resumes = true;
    // kTLS: where the kernel, OpenSSL and the cipher have it, the kernel makes the records that are
    // sent; elsewhere this does nothing. See tls_stream::sends_in_kernel(). What is received is
    // opened by OpenSSL. The kernel cannot change its keys: with TLS 1.3 a peer that asks for
    // others (few do, and after gigabytes) is left, with operation_not_supported.
    bool in_kernel = false;
};

struct tls_server_options;

class tls_context {
public:
    // The errors of both: that a file cannot be read, or is none of its kind, by the system or in
    // tls_category(); std::errc::invalid_argument: an option is none of what is said above, or the
    // name of a file or host has a zero byte within. To make one reads files and so keeps the
    // thread waiting; it does not suspend.

    // Trusts what those have signed whose certificates are in this file; without a name: whom the
    // system trusts.
    static result<tls_context> client(const std::string& trusted_file = {},
                                      const tls_client_options& = {});
    // Is who the certificate says. With it, after it, is the chain up to who is trusted.
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

struct tls_server_options {
    // ALPN: the first of these that the client offers is chosen. If it offers others alone, the
    // handshake ends (no_application_protocol); if it offers none, there is none.
    std::vector<std::string> protocols = {};
    tls_version least = tls_version::tls_1_2;
    tls_clients clients = tls_clients::unknown;
    std::string clients_trusted_file = {};  // whose signatures count; needed to ask, and only then
    // Whether a client may come back without a whole handshake, within the context's life.
    bool resumes = true;
    bool in_kernel = false;  // as a client's
    // By the name that a client asks for (SNI; in any case of letters, without wildcards): which
    // server context its connection has, with all of that one's options but its `hosts`. Other
    // names, and none, get this context.
    std::map<std::string, tls_context> hosts = {};
};

namespace detail {

// What OpenSSL has noted on this thread, the first of it; nothing is noted from now on.
std::error_code tls_error_noted() noexcept;

}  // namespace detail
}  // namespace weft

template <>
struct std::is_error_condition_enum<weft::tls_refusal> : std::true_type {};
