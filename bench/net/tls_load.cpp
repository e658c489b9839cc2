// net_tls_load ROUNDS PEER SERVER...: the processor time of an echo server under TLS, for a message
// and for a handshake, and the ratio of each server to the peer. Each is `[NAME=VALUE] <program>
// [STYLE]` in one word ("WEFT_IO=epoll ./weft_net_tls_echo task"), and is run with PORT,
// CERTIFICATE and KEY before the style. The servers are measured in turn, round by round; a ratio
// is taken within each round (trial.hpp). Exit status: 0 no bar is missed, 1 one is, 2 bad input,
// or a server has not started.
//
//   a round: 100 connections, 1 KiB on each at once, 200 times; then 500 handshakes, one by one

#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/net/server_process.hpp"
#include "bench/net/sockets.hpp"
#include "bench/net/trial.hpp"

namespace {

using bench::net::give_up;

constexpr int connections = 100;
constexpr int messages = 200;  // on each
constexpr int handshakes = 500;
constexpr std::size_t message_bytes = 1024;

// A certificate that signs itself, in two files.
struct identity {
    std::string folder = "/tmp/weft.tls.XXXXXX";
    std::string certificate, key;

    identity() {
        if (::mkdtemp(folder.data()) == nullptr) give_up("no folder for the certificate");
        certificate = folder + "/certificate";
        key = folder + "/key";
        EVP_PKEY* const pair = ::EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
        X509* const x = ::X509_new();
        ::ASN1_INTEGER_set(::X509_get_serialNumber(x), 1);
        ::X509_gmtime_adj(::X509_getm_notBefore(x), -60);
        ::X509_gmtime_adj(::X509_getm_notAfter(x), 86'400);
        ::X509_set_pubkey(x, pair);
        if (::X509_sign(x, pair, ::EVP_sha256()) == 0) give_up("no certificate");
        std::FILE* f = std::fopen(certificate.c_str(), "we");
        ::PEM_write_X509(f, x);
        std::fclose(f);
        f = std::fopen(key.c_str(), "we");
        ::PEM_write_PrivateKey(f, pair, nullptr, nullptr, 0, nullptr, nullptr);
        std::fclose(f);
        ::X509_free(x);
        ::EVP_PKEY_free(pair);
    }
    identity(const identity&) = delete;
    ~identity() {
        ::unlink(certificate.c_str());
        ::unlink(key.c_str());
        ::rmdir(folder.c_str());
    }
};

struct server {
    std::string command;
    std::string setting{}, style{};  // parts of it
    pid_t pid = 0;
    std::uint16_t port = 0;
    std::vector<double> message_us{}, handshake_us{};

    double cpu_us() const {
        bench::net::usage u;
        std::string why;
        if (!bench::net::look_at(pid, u, why)) give_up(why);
        return static_cast<double>(u.cpu_ns) / 1000;
    }
};

std::uint16_t free_port() {
    const int fd = bench::net::listen_on(0);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
    ::close(fd);
    return ntohs(at.sin_port);
}

void start(server& s, const identity& me) {
    s.port = free_port();
    std::istringstream words(s.command);
    std::string program;
    words >> program;
    if (program.find('=') != program.npos) {
        s.setting = program;
        words >> program;
    }
    words >> s.style;
    const std::string port = std::to_string(s.port);
    int out[2];
    if (::pipe(out) != 0) give_up("no pipe");
    s.pid = ::fork();
    if (s.pid == 0) {
        bench::net::pin_to(0);
        ::dup2(out[1], 1);
        if (!s.setting.empty()) ::putenv(s.setting.data());
        ::execl(program.c_str(), program.c_str(), port.c_str(), me.certificate.c_str(),
                me.key.c_str(), s.style.empty() ? nullptr : s.style.c_str(), nullptr);
        ::_exit(2);
    }
    ::close(out[1]);
    char ready[16];
    if (::read(out[0], ready, sizeof ready) <= 0) give_up("a server has not begun");
    ::close(out[0]);
}

SSL* connected(SSL_CTX* c, const server& s) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(s.port);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
        bench::net::die("connect");
    bench::net::set_no_delay(fd);
    SSL* const ssl = ::SSL_new(c);
    ::SSL_set_fd(ssl, fd);
    if (::SSL_connect(ssl) != 1) give_up("a handshake has failed");
    return ssl;
}

// The connection has answered once, so that no work of the server is left over.
void exchange(SSL* ssl, std::size_t bytes) {
    std::array<char, message_bytes> b{};
    if (::SSL_write(ssl, b.data(), static_cast<int>(bytes)) <= 0) give_up("a write has failed");
}
void await_answer(SSL* ssl, std::size_t bytes) {
    std::array<char, message_bytes> b{};
    while (bytes > 0) {
        const int n = ::SSL_read(ssl, b.data(), static_cast<int>(bytes));
        if (n <= 0) give_up("a read has failed");
        bytes -= static_cast<std::size_t>(n);
    }
}

void disconnect(SSL* ssl) {
    const int fd = ::SSL_get_fd(ssl);
    ::SSL_free(ssl);
    ::close(fd);
}

void measure(server& s, SSL_CTX* c) {
    std::vector<SSL*> all;
    for (int i = 0; i < connections; ++i) {
        all.push_back(connected(c, s));
        exchange(all.back(), 1);
        await_answer(all.back(), 1);
    }
    double before = s.cpu_us();
    for (int m = 0; m < messages; ++m) {
        for (SSL* ssl : all) exchange(ssl, message_bytes);
        for (SSL* ssl : all) await_answer(ssl, message_bytes);
    }
    s.message_us.push_back((s.cpu_us() - before) / (messages * connections));
    for (SSL* ssl : all) disconnect(ssl);
    before = s.cpu_us();
    for (int i = 0; i < handshakes; ++i) {
        SSL* const ssl = connected(c, s);
        exchange(ssl, 1);
        await_answer(ssl, 1);
        disconnect(ssl);
    }
    s.handshake_us.push_back((s.cpu_us() - before) / handshakes);
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 3 ? std::atoi(argv[1]) : 0;
    if (rounds < 1) give_up("usage: net_tls_load ROUNDS PEER SERVER...");
    ::signal(SIGPIPE, SIG_IGN);
    const identity me;
    SSL_CTX* const c = ::SSL_CTX_new(::TLS_client_method());
    ::SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
    bench::net::pin_to(1);
    std::vector<server> servers;
    for (int i = 2; i < argc; ++i) start(servers.emplace_back(server{argv[i]}), me);
    for (int r = 0; r < rounds; ++r)
        for (server& s : servers) measure(s, c);
    for (server& s : servers) {
        ::kill(s.pid, SIGTERM);
        ::waitpid(s.pid, nullptr, 0);
        std::printf("%-60s %7.2f us a message %8.1f us a handshake\n", s.command.c_str(),
                    bench::net::median(s.message_us), bench::net::median(s.handshake_us));
    }
    ::SSL_CTX_free(c);
    bench::net::bars bars;
    const server& peer = servers.front();
    for (const server& s : std::span(servers).subspan(1)) {
        const std::string name = s.setting + " " + s.style;
        bars.hold(name + ": a message", s.message_us, peer.message_us, 1.05);
        bars.hold(name + ": a handshake", s.handshake_us, peer.handshake_us, 1.05);
    }
    return bars.any_missed ? 1 : 0;
}
