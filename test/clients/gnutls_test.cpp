// GnuTLS, unmodified: clients and servers of TLS, over sockets that block.
#include <gnutls/gnutls.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/clients/agents.hpp"
#include "test/clients/identity.hpp"
#include "test/clients/sockets.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;
using weft::testing::identity;
using weft::testing::socket_pair;

template <class T, void (*Free)(T)>
using owned = std::unique_ptr<std::remove_pointer_t<T>, freed_by<Free>>;
using credentials = owned<gnutls_certificate_credentials_t, ::gnutls_certificate_free_credentials>;
using session = owned<gnutls_session_t, ::gnutls_deinit>;

credentials new_credentials() {
    gnutls_certificate_credentials_t c = nullptr;
    EXPECT_EQ(::gnutls_certificate_allocate_credentials(&c), GNUTLS_E_SUCCESS);
    return credentials(c);
}

// The identity of the servers, and what the clients trust.
class parties_of_tls {
public:
    parties_of_tls() {
        EXPECT_EQ(::gnutls_certificate_set_x509_key_file(server_.get(), own_.certificate().c_str(),
                                                         own_.key().c_str(), GNUTLS_X509_FMT_PEM),
                  GNUTLS_E_SUCCESS);
        EXPECT_EQ(::gnutls_certificate_set_x509_trust_file(
                      client_.get(), own_.certificate().c_str(), GNUTLS_X509_FMT_PEM),
                  1);
    }

    session server(int fd) const { return session_of(GNUTLS_SERVER, server_, fd); }
    session client(int fd) const {
        session s = session_of(GNUTLS_CLIENT, client_, fd);
        ::gnutls_session_set_verify_cert(s.get(), "localhost", 0);
        return s;
    }

private:
    static session session_of(unsigned kind, const credentials& c, int fd) {
        gnutls_session_t s = nullptr;
        EXPECT_EQ(::gnutls_init(&s, kind), GNUTLS_E_SUCCESS);
        EXPECT_EQ(::gnutls_set_default_priority(s), GNUTLS_E_SUCCESS);
        EXPECT_EQ(::gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, c.get()), GNUTLS_E_SUCCESS);
        ::gnutls_transport_set_int(s, fd);
        return session(s);
    }

    weft::testing::folder folder_{"gnutls"};
    identity own_{folder_, "own"};
    const credentials server_ = new_credentials();
    const credentials client_ = new_credentials();
};

const parties_of_tls& ends() {
    static const parties_of_tls the_one;
    return the_one;
}

bool send(const session& s, const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
        const ssize_t n = ::gnutls_record_send(s.get(), text.data() + sent, text.size() - sent);
        if (n <= 0) return false;
        sent += static_cast<std::size_t>(n);
    }
    return true;
}
// Fewer bytes: the connection has ended before.
std::string received(const session& s, std::size_t bytes) {
    std::string text(bytes, '\0');
    std::size_t had = 0;
    while (had < bytes) {
        const ssize_t n = ::gnutls_record_recv(s.get(), text.data() + had, bytes - had);
        if (n <= 0) break;
        had += static_cast<std::size_t>(n);
    }
    text.resize(had);
    return text;
}

class gnutls : public weft::testing::client_test {
protected:
    static void SetUpTestSuite() { ends(); }

    // Of each pair, one sends `bytes` of its own and the other sends them back after a while.
    void expect_echoes(weft::testing::seconds bar, int pair_count, std::size_t bytes,
                       std::chrono::milliseconds late) {
        const std::vector<socket_pair> pairs(static_cast<std::size_t>(pair_count));
        std::string what = std::to_string(pair_count);
        what.append(" echoes after ").append(std::to_string(late.count())).append(" ms");
        all_within(bar, what, 2 * pair_count, [&](int i) {
            const int fd = pairs[static_cast<std::size_t>(i / 2)].end(i % 2);
            const session s = i % 2 == 0 ? ends().server(fd) : ends().client(fd);
            ASSERT_EQ(::gnutls_handshake(s.get()), GNUTLS_E_SUCCESS);
            if (i % 2 == 0) {
                const std::string text = received(s, bytes);
                std::this_thread::sleep_for(late);
                EXPECT_TRUE(send(s, text));
            } else {
                const std::string text(bytes, static_cast<char>('a' + i % 26));
                EXPECT_TRUE(send(s, text));
                EXPECT_TRUE(received(s, bytes) == text);
            }
            EXPECT_EQ(::gnutls_bye(s.get(), GNUTLS_SHUT_RDWR), GNUTLS_E_SUCCESS);
        });
    }
};
INSTANTIATE_FOR_ALL(gnutls);
class gnutls_in : public gnutls {};
INSTANTIATE_FOR_FIBERS(gnutls_in);

TEST_P(gnutls, is_answered) { expect_echoes(10s, 10, 1000, 0ms); }

TEST_P(gnutls, moves_megabytes) { expect_echoes(20s, 10, 3'000'000, 0ms); }

TEST_P(gnutls, waits_concurrently) { expect_echoes(700ms, 20, 1000, 300ms); }

TEST_P(gnutls, honours_its_timeouts) {
    const std::vector<socket_pair> silent(20);
    all_within(500ms, "20 times a timeout of 300 ms", 20, [&](int i) {
        const session s = ends().client(silent[static_cast<std::size_t>(i)].end(0));
        ::gnutls_handshake_set_timeout(s.get(), 300);
        EXPECT_EQ(::gnutls_handshake(s.get()), GNUTLS_E_TIMEDOUT);
    });
}

TEST_P(gnutls_in, can_be_stopped) {
    expect_stopped_at_once("gnutls_handshake", [](bool& inside) {
        const socket_pair silent;
        const session s = ends().client(silent.end(0));
        inside = true;
        EXPECT_LT(::gnutls_handshake(s.get()), 0);
    });
}

}  // namespace
