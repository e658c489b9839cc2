#include "weft/io/tls/tls_context.hpp"

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <map>
#include <memory>
#include <new>
#include <string_view>

#include "weft/base/platform.hpp"
#include "weft/io/detail/c_string.hpp"

namespace weft {
namespace {

class refusal_category final : public std::error_category {
    const char* name() const noexcept override { return "tls_verify_error"; }
    std::string message(int e) const override {
        return e == static_cast<int>(tls_verify_error::hostname_mismatch)
                   ? "the certificate is another host's"
                   : "the certificate is not trusted";
    }
};

class trust_category final : public std::error_category {
    const char* name() const noexcept override { return "tls_trust"; }
    std::string message(int e) const override { return ::X509_verify_cert_error_string(e); }
    std::error_condition default_error_condition(int e) const noexcept override {
        const bool other = e == X509_V_ERR_HOSTNAME_MISMATCH || e == X509_V_ERR_IP_ADDRESS_MISMATCH;
        return other ? tls_verify_error::hostname_mismatch : tls_verify_error::untrusted;
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

// What a server looks up during a handshake. Owned by the SSL_CTX, and destroyed with it.
struct server_settings {
    std::string protocols;  // as they are sent
    std::map<std::string, tls_context> hosts;
};

int settings_index() noexcept {
    static const int the_one = ::SSL_CTX_get_ex_new_index(
        0, nullptr, nullptr, nullptr, [](void*, void* p, CRYPTO_EX_DATA*, int, long, void*) {
            delete static_cast<server_settings*>(p);
        });
    return the_one;
}
// In the form of ALPN: each after its length.
bool in_one(const std::vector<std::string>& protocols, std::string& all) {
    for (const std::string& p : protocols) {
        if (p.empty() || p.size() > 255) return false;
        all += static_cast<char>(p.size());
        all += p;
    }
    return all.size() <= 65535;
}

std::string in_small_letters(std::string_view name) {
    std::string s(name);
    for (char& c : s)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return s;
}

const unsigned char* bytes_in(const std::string& s) noexcept {
    return reinterpret_cast<const unsigned char*>(s.data());
}

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* bytes,
                    const unsigned char* offered, unsigned offered_bytes, void* settings) {
    const std::string& own = static_cast<const server_settings*>(settings)->protocols;
    unsigned char* found = nullptr;
    const int r = ::SSL_select_next_proto(
        &found, bytes, bytes_in(own), static_cast<unsigned>(own.size()), offered, offered_bytes);
    *chosen = found;
    return r == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// The name that a client asks for; empty: none. (RFC 6066: a list of one, of type zero.)
std::string_view name_asked_for(SSL* ssl) noexcept {
    const unsigned char* p = nullptr;
    std::size_t n = 0;
    if (::SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &n) != 1 || n < 5) return {};
    const auto length_at = [p](std::size_t i) { return std::size_t{p[i]} << 8 | p[i + 1]; };
    if (length_at(0) + 2 != n || p[2] != TLSEXT_NAMETYPE_host_name || length_at(3) > n - 5)
        return {};
    return {reinterpret_cast<const char*>(p + 5), length_at(3)};
}

// Changes the context of a connection. This is before OpenSSL looks up the session that a client
// wants to resume: it finds only those of the new context.
void become(SSL* ssl, SSL_CTX* other) noexcept {
    ::SSL_set_SSL_CTX(ssl, other);
    ::SSL_set_verify(ssl, ::SSL_CTX_get_verify_mode(other), nullptr);
    ::SSL_set_min_proto_version(ssl, static_cast<int>(::SSL_CTX_get_min_proto_version(other)));
    ::SSL_set_max_proto_version(ssl, static_cast<int>(::SSL_CTX_get_max_proto_version(other)));
    ::SSL_clear_options(ssl, ~std::uint64_t{0});
    ::SSL_set_options(ssl, ::SSL_CTX_get_options(other));
    static_cast<void>(::SSL_set_num_tickets(ssl, ::SSL_CTX_get_num_tickets(other)));
}

// Set for a connection whose host was chosen.
int chosen_index() noexcept {
    static const int the_one = ::SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
    return the_one;
}

int choose_host(SSL* ssl, int* alert, void* settings) {
    // A client that was asked for another key sends its hello twice, the second time to the host.
    if (::SSL_get_ex_data(ssl, chosen_index()) != nullptr) return SSL_CLIENT_HELLO_SUCCESS;
    const auto& hosts = static_cast<const server_settings*>(settings)->hosts;
    *alert = SSL_AD_INTERNAL_ERROR;
    if (::SSL_set_ex_data(ssl, chosen_index(), settings) != 1) return SSL_CLIENT_HELLO_ERROR;
#if WEFT_EXCEPTIONS
    try {
        const auto at = hosts.find(in_small_letters(name_asked_for(ssl)));
        if (at != hosts.end()) become(ssl, at->second.native_handle());
    } catch (const std::bad_alloc&) {
        return SSL_CLIENT_HELLO_ERROR;
    }
#else
    const auto at = hosts.find(in_small_letters(name_asked_for(ssl)));
    if (at != hosts.end()) become(ssl, at->second.native_handle());
#endif
    return SSL_CLIENT_HELLO_SUCCESS;
}

void set_common(SSL_CTX* c, tls_version least, bool resumes, bool in_kernel) {
    ::SSL_CTX_set_min_proto_version(
        c, least == tls_version::tls_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
    if (in_kernel) ::SSL_CTX_set_options(c, SSL_OP_ENABLE_KTLS);
    if (resumes) return;
    ::SSL_CTX_set_options(c, SSL_OP_NO_TICKET);
    ::SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    ::SSL_CTX_set_num_tickets(c, 0);
}

bool identify(SSL_CTX* c, const std::string& certificate_file, const std::string& key_file) {
    return ::SSL_CTX_use_certificate_chain_file(c, certificate_file.c_str()) == 1 &&
           ::SSL_CTX_use_PrivateKey_file(c, key_file.c_str(), SSL_FILETYPE_PEM) == 1 &&
           ::SSL_CTX_check_private_key(c) == 1;
}

// Sends a client the names of the issuers whose certificates it accepts.
bool ask_clients(SSL_CTX* c, const tls_server_options& o) {
    if (o.clients == tls_clients::unknown) return true;
    const int must = o.clients == tls_clients::required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    ::SSL_CTX_set_verify(c, SSL_VERIFY_PEER | must, nullptr);
    const char* const file = o.clients_trusted_file.c_str();
    STACK_OF(X509_NAME)* const names = ::SSL_load_client_CA_file(file);
    if (names == nullptr) return false;
    ::SSL_CTX_set_client_CA_list(c, names);
    return ::SSL_CTX_load_verify_file(c, file) == 1;
}

bool is_server(const tls_context& c) noexcept {
    return c.native_handle() != nullptr &&
           ::SSL_CTX_get_ssl_method(c.native_handle()) == ::TLS_server_method();
}

// With the settings of both sides. Null: OpenSSL has noted why.
std::shared_ptr<SSL_CTX> fresh_context(const SSL_METHOD* of) {
    ::ERR_clear_error();
    SSL_CTX* const c = ::SSL_CTX_new(of);
    if (c == nullptr) return nullptr;
    std::shared_ptr<SSL_CTX> owned(c, ::SSL_CTX_free);
    ::SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION);
    ::SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);  // an idle connection has none
    ::SSL_CTX_set_read_ahead(c, 1);                   // a record and what follows it with one call
    return owned;
}

// A session is resumed only by the context that it was started with; another one may ask for other
// certificates. (Without an ID, OpenSSL resumes no session in which it has asked for a
// certificate.)
bool tell_sessions_apart(SSL_CTX* c) {
    unsigned char id[SSL_MAX_SID_CTX_LENGTH];
    return ::RAND_bytes(id, sizeof id) == 1 &&
           ::SSL_CTX_set_session_id_context(c, id, sizeof id) == 1;
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

std::error_condition make_error_condition(tls_verify_error e) noexcept {
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

result<tls_context> tls_context::client(const std::string& trusted_file,
                                        const tls_client_options& o) {
    std::string protocols;
    if (!in_one(o.protocols, protocols) || o.certificate_file.empty() != o.key_file.empty() ||
        !detail::are_c_strings({trusted_file, o.certificate_file, o.key_file}))
        return failure(std::errc::invalid_argument);
    std::shared_ptr<SSL_CTX> c = fresh_context(::TLS_client_method());
    if (c == nullptr) return failure(detail::tls_error_noted());
    set_common(c.get(), o.least, o.resumes, o.in_kernel);
    ::SSL_CTX_set_verify(c.get(), SSL_VERIFY_PEER, nullptr);
    const int r = trusted_file.empty() ? ::SSL_CTX_set_default_verify_paths(c.get())
                                       : ::SSL_CTX_load_verify_file(c.get(), trusted_file.c_str());
    if (r != 1 || (!o.key_file.empty() && !identify(c.get(), o.certificate_file, o.key_file)) ||
        ::SSL_CTX_set_alpn_protos(c.get(), bytes_in(protocols),
                                  static_cast<unsigned>(protocols.size())) != 0)
        return failure(detail::tls_error_noted());
    ::ERR_clear_error();
    return tls_context(std::move(c));
}

result<tls_context> tls_context::server(const std::string& certificate_file,
                                        const std::string& key_file) {
    return server(certificate_file, key_file, {});
}

result<tls_context> tls_context::server(const std::string& certificate_file,
                                        const std::string& key_file, const tls_server_options& o) {
    auto settings = std::make_unique<server_settings>();
    const bool asks = o.clients != tls_clients::unknown;
    if (!in_one(o.protocols, settings->protocols) || asks == o.clients_trusted_file.empty() ||
        !detail::are_c_strings({certificate_file, key_file, o.clients_trusted_file}))
        return failure(std::errc::invalid_argument);
    for (const auto& [name, context] : o.hosts)
        if (name.empty() || !detail::is_c_string(name) || !is_server(context) ||
            !settings->hosts.emplace(in_small_letters(name), context).second)
            return failure(std::errc::invalid_argument);
    std::shared_ptr<SSL_CTX> c = fresh_context(::TLS_server_method());
    if (c == nullptr) return failure(detail::tls_error_noted());
    set_common(c.get(), o.least, o.resumes, o.in_kernel);
    if (!identify(c.get(), certificate_file, key_file) || !tell_sessions_apart(c.get()) ||
        !ask_clients(c.get(), o) ||
        ::SSL_CTX_set_ex_data(c.get(), settings_index(), settings.get()) != 1)
        return failure(detail::tls_error_noted());
    server_settings* const kept = settings.release();
    if (!kept->protocols.empty()) ::SSL_CTX_set_alpn_select_cb(c.get(), choose_protocol, kept);
    if (!kept->hosts.empty()) ::SSL_CTX_set_client_hello_cb(c.get(), choose_host, kept);
    ::ERR_clear_error();
    return tls_context(std::move(c));
}

}  // namespace weft
