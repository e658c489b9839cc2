#include "weft/io/tls/tls_context.hpp"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "test/io/tls_identity.hpp"

namespace {

using weft::tls_context;
using weft::testing::tls_identity;

class context_of_tls : public ::testing::Test {
protected:
    void TearDown() override { EXPECT_EQ(::ERR_peek_error(), 0u); }

    const tls_identity anna{"anna.test"};
};

TEST_F(context_of_tls, is_made_from_files) {
    EXPECT_TRUE(tls_context::client());
    EXPECT_TRUE(tls_context::client(anna.certificate()));
    const tls_context c = tls_context::server(anna.certificate(), anna.key()).value();
    const tls_context copy = c;
    EXPECT_EQ(copy.native_handle(), c.native_handle());
    EXPECT_EQ(::SSL_CTX_get_min_proto_version(c.native_handle()), TLS1_2_VERSION);
}

TEST_F(context_of_tls, reports_files_that_are_missing_or_of_the_wrong_kind) {
    EXPECT_EQ(tls_context::client("/none").error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(tls_context::server("/none", anna.key()).error(),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(tls_context::server(anna.certificate(), "/none").error(),
              std::errc::no_such_file_or_directory);
    const std::error_code no_key =
        tls_context::server(anna.certificate(), anna.certificate()).error();
    EXPECT_EQ(no_key.category(), weft::tls_category()) << no_key.message();
    const std::error_code no_certificate = tls_context::client(anna.key()).error();
    EXPECT_EQ(no_certificate.category(), weft::tls_category()) << no_certificate.message();
}

TEST_F(context_of_tls, refuses_text_with_an_embedded_zero) {
    const auto invalid = std::errc::invalid_argument;
    const auto cut = [](std::string s) { return s + '\0' + "x"; };
    const std::string file = anna.certificate();
    const std::string key = anna.key();
    EXPECT_EQ(tls_context::client(cut(file)).error(), invalid);
    EXPECT_EQ(tls_context::client(std::string(1, '\0')).error(), invalid);
    EXPECT_EQ(tls_context::client({}, {.certificate_file = cut(file), .key_file = key}).error(),
              invalid);
    EXPECT_EQ(tls_context::client({}, {.certificate_file = file, .key_file = cut(key)}).error(),
              invalid);
    EXPECT_EQ(tls_context::server(cut(file), key).error(), invalid);
    EXPECT_EQ(tls_context::server(file, cut(key)).error(), invalid);
    EXPECT_EQ(
        tls_context::server(
            file, key, {.clients = weft::tls_clients::asked, .clients_trusted_file = cut(file)})
            .error(),
        invalid);
    const tls_context other = tls_context::server(file, key).value();
    EXPECT_EQ(tls_context::server(file, key, {.hosts = {{cut("anna.test"), other}}}).error(),
              invalid);
}

TEST_F(context_of_tls, accepts_a_protocol_with_an_embedded_zero) {
    EXPECT_TRUE(tls_context::client({}, {.protocols = {std::string("a\0b", 3)}}));
}

TEST_F(context_of_tls, refuses_a_key_that_does_not_match) {
    const tls_identity bert("bert.test");
    const std::error_code e = tls_context::server(anna.certificate(), bert.key()).error();
    EXPECT_EQ(e.category(), weft::tls_category());
    EXPECT_EQ(ERR_GET_REASON(static_cast<unsigned>(e.value())), X509_R_KEY_VALUES_MISMATCH);
    EXPECT_NE(e.message().find("key values mismatch"), std::string::npos) << e.message();
}

TEST_F(context_of_tls, a_refusal_has_a_name_and_a_reason) {
    using weft::tls_verify_error;
    const std::error_code other(X509_V_ERR_HOSTNAME_MISMATCH, weft::tls_trust_category());
    EXPECT_EQ(other, tls_verify_error::hostname_mismatch);
    EXPECT_NE(other, tls_verify_error::untrusted);
    EXPECT_EQ(other.message(), "hostname mismatch");
    const std::error_code old(X509_V_ERR_CERT_HAS_EXPIRED, weft::tls_trust_category());
    EXPECT_EQ(old, tls_verify_error::untrusted);
    EXPECT_NE(old, tls_verify_error::hostname_mismatch);
    // A condition is no code: its number is not one of OpenSSL's.
    const std::error_code two(2, weft::tls_trust_category());
    EXPECT_NE(two, tls_verify_error::hostname_mismatch);
    EXPECT_EQ(make_error_condition(tls_verify_error::hostname_mismatch).message(),
              "the certificate is another host's");
}

TEST_F(context_of_tls, refuses_invalid_options) {
    const auto client = [&](const weft::tls_client_options& o) {
        return tls_context::client(anna.certificate(), o).error();
    };
    const auto server = [&](const weft::tls_server_options& o) {
        return tls_context::server(anna.certificate(), anna.key(), o).error();
    };
    const auto invalid = std::errc::invalid_argument;
    for (const std::string& bad : {std::string(), std::string(256, 'x')}) {
        EXPECT_EQ(client({.protocols = {"h2", bad}}), invalid);
        EXPECT_EQ(server({.protocols = {bad}}), invalid);
    }
    EXPECT_EQ(client({.protocols = std::vector<std::string>(257, std::string(255, 'x'))}), invalid);
    EXPECT_EQ(client({.certificate_file = anna.certificate()}), invalid) << "a half";
    EXPECT_EQ(client({.key_file = anna.key()}), invalid);
    EXPECT_EQ(client({.certificate_file = "/none", .key_file = "/none"}),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(server({.clients = weft::tls_clients::required}), invalid) << "trusted by whom?";
    EXPECT_EQ(server({.clients_trusted_file = anna.certificate()}), invalid);
    EXPECT_EQ(
        server({.clients = weft::tls_clients::asked, .clients_trusted_file = "/none"}).category(),
        std::system_category());
    const std::error_code no_certificate =
        server({.clients = weft::tls_clients::asked, .clients_trusted_file = anna.key()});
    EXPECT_EQ(no_certificate.category(), weft::tls_category()) << no_certificate.message();
    tls_context of_server = tls_context::server(anna.certificate(), anna.key()).value();
    const tls_context of_client = tls_context::client().value();
    EXPECT_EQ(server({.hosts = {{"", of_server}}}), invalid);
    EXPECT_EQ(server({.hosts = {{"a.test", of_client}}}), invalid);
    EXPECT_EQ(server({.hosts = {{"a.test", of_server}, {"A.TEST", of_server}}}), invalid);
    const tls_context kept = std::move(of_server);
    EXPECT_EQ(server({.hosts = {{"a.test", of_server}}}), invalid);  // NOLINT: is moved
}

}  // namespace
