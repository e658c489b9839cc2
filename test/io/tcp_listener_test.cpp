#include "weft/io/tcp_listener.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "test/io/names.hpp"
#include "test/support/nothing_spare.hpp"
#include "weft/io/unix_stream.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::tcp_listener;
using weft::tcp_stream;
using weft::testing::any_listener;
using weft::testing::cpu_seconds;
using weft::testing::for_some_port;

class listener : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(listener);

TEST_P(listener, accepts_a_connection) {
    run([] {
        tcp_listener l = any_listener();
        tcp_stream c = tcp_stream::connect(l.local_endpoint()).value();
        tcp_stream s = l.accept().value();
        EXPECT_EQ(s.remote_endpoint(), c.local_endpoint());
    });
}

TEST_P(listener, waits_for_a_connection) {
    run([] {
        tcp_listener l = any_listener();
        bool accepted = false;
        fiber server([&] { accepted = l.accept().has_value(); });
        weft::this_fiber::sleep_for(3ms);
        EXPECT_FALSE(accepted);
        auto c = tcp_stream::connect(l.local_endpoint());
        server.join();
        EXPECT_TRUE(accepted);
    });
}

TEST_P(listener, serves_many_concurrent_accepts) {
    run([] {
        tcp_listener l = any_listener();
        std::vector<fiber> servers;
        int accepted = 0;
        for (int i = 0; i < 8; ++i)
            servers.emplace_back([&] { accepted += l.accept().has_value(); });
        weft::this_fiber::yield();
        std::vector<tcp_stream> clients;
        for (int i = 0; i < 8; ++i)
            clients.push_back(tcp_stream::connect(l.local_endpoint()).value());
        for (fiber& f : servers) f.join();
        EXPECT_EQ(accepted, 8);
    });
}

TEST_P(listener, ends_a_waiting_accept_when_closed) {
    run([] {
        tcp_listener l = any_listener();
        std::error_code how;
        fiber server([&] { how = l.accept().error(); });
        weft::this_fiber::sleep_for(2ms);
        l.close();
        server.join();
        EXPECT_EQ(how, weft::errc::closed);
        EXPECT_EQ(l.accept().error(), weft::errc::closed);
    });
}

TEST_P(listener, reports_why_it_cannot_be_bound) {
    run([] {
        tcp_listener l = any_listener();
        EXPECT_EQ(tcp_listener::bind(l.local_endpoint()).error(), std::errc::address_in_use);
        EXPECT_EQ(tcp_listener::bind("nonsense").error(), std::errc::invalid_argument);
        EXPECT_EQ(tcp_listener::bind("192.0.2.1:0").error(), std::errc::address_not_available);
        EXPECT_EQ(tcp_listener::bind(weft::endpoint::local("/x").value()).error(),
                  std::errc::address_family_not_supported);
    });
}

TEST_P(listener, may_share_its_port) {
    run([] {
        tcp_listener a = tcp_listener::bind("127.0.0.1:0", {.reuse_port = true}).value();
        EXPECT_TRUE(tcp_listener::bind(a.local_endpoint(), {.reuse_port = true}));
    });
}

int option_of(int number, int level, int name) {
    int value = -1;
    ::socklen_t size = sizeof value;
    return ::getsockopt(number, level, name, &value, &size) == 0 ? value : -1;
}

TEST_P(listener, can_share_an_ipv6_port_with_ipv4) {
    run([] {
        auto v6 = tcp_listener::bind("[::]:0", {.only_v6 = true});
        if (!v6) return;  // a machine without IPv6
        EXPECT_EQ(option_of(v6->native_handle(), IPPROTO_IPV6, IPV6_V6ONLY), 1);
        EXPECT_TRUE(for_some_port([] {
            const auto l = tcp_listener::bind("[::]:0", {.only_v6 = true}).value();
            const weft::endpoint v4(weft::ip_address::any(), l.local_endpoint().port());
            return tcp_listener::bind(v4).has_value();
        }));
        tcp_listener both = tcp_listener::bind("[::]:0").value();
        const weft::endpoint taken(weft::ip_address::any(), both.local_endpoint().port());
        EXPECT_EQ(tcp_listener::bind(taken).error(), std::errc::address_in_use);
    });
}

TEST_P(listener, can_enable_tcp_fast_open) {
    run([] {
        tcp_listener l = tcp_listener::bind("127.0.0.1:0", {.fast_open = 7}).value();
        EXPECT_EQ(option_of(l.native_handle(), IPPROTO_TCP, TCP_FASTOPEN), 7);
        EXPECT_EQ(option_of(any_listener().native_handle(), IPPROTO_TCP, TCP_FASTOPEN), 0);
    });
}

TEST_P(listener, can_defer_an_accept_until_data_arrives) {
    run([] {
        tcp_listener l = tcp_listener::bind("127.0.0.1:0", {.defer_accept_timeout = 5s}).value();
        EXPECT_GE(option_of(l.native_handle(), IPPROTO_TCP, TCP_DEFER_ACCEPT), 5);
        tcp_stream silent = tcp_stream::connect(l.local_endpoint()).value();
        tcp_stream speaks = tcp_stream::connect(l.local_endpoint()).value();
        ASSERT_TRUE(speaks.write_all(bytes_of("x")));
        EXPECT_EQ(l.accept().value().remote_endpoint(), speaks.local_endpoint());
    });
}

TEST_P(listener, can_be_adopted_from_an_fd) {
    run([] {
        const int number = ::socket(AF_INET, SOCK_STREAM, 0);
        ASSERT_EQ(::listen(number, 5), 0);  // at any port
        for (const bool multishot : {false, true}) {
            tcp_listener l = tcp_listener::adopt(::dup(number), {.multishot = multishot}).value();
            EXPECT_NE(::fcntl(l.native_handle(), F_GETFD) & FD_CLOEXEC, 0);
            EXPECT_NE(::fcntl(number, F_GETFL) & O_NONBLOCK, 0);
            const weft::endpoint to(weft::ip_address::loopback(), l.local_endpoint().port());
            fiber server([&] { EXPECT_TRUE(l.accept()); });
            weft::this_fiber::yield();
            EXPECT_TRUE(tcp_stream::connect(to));
            server.join();
        }
        ::close(number);
    });
}

// Also if it fails it is the listener's: it is closed.
TEST_P(listener, does_not_adopt_what_does_not_listen) {
    run([] {
        const int numbers[] = {::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                               ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
                               ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                               ::open("/dev/null", O_RDONLY | O_CLOEXEC)};
        for (const int n : numbers) {
            EXPECT_EQ(tcp_listener::adopt(n).error(), std::errc::invalid_argument);
            EXPECT_EQ(::fcntl(n, F_GETFD), -1);
        }
        EXPECT_EQ(tcp_listener::adopt(-1).error(), std::errc::bad_file_descriptor);
        const int bound = ::dup(any_listener().native_handle());
        EXPECT_EQ(weft::unix_listener::adopt(bound).error(), std::errc::invalid_argument);
    });
}

// A connection that ended before it was accepted is accepted like any other: its first read reports
// the end.
TEST_P(listener, serves_on_after_a_connection_aborted_before_accept) {
    run([] {
        tcp_listener l = any_listener();
        tcp_stream::connect(l.local_endpoint()).value().abort();
        tcp_stream stays = tcp_stream::connect(l.local_endpoint()).value();
        ASSERT_TRUE(stays.write_all(bytes_of("x")));
        for (;;) {
            tcp_stream s = l.accept().value();
            std::string b(1, 0);
            if (s.read(room(b)).value_or(0) == 1) return;
        }
    });
}

// Descriptors up to the limit, so that none is left.
std::vector<int> take_all_numbers() {
    std::vector<int> all;
    for (int n; (n = ::dup(0)) >= 0;) all.push_back(n);
    return all;
}

class without_descriptors : public listener {
protected:
    void SetUp() override {
        listener::SetUp();
        ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        const ::rlimit few = {256, before_.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    }
    void TearDown() override {
        ::setrlimit(RLIMIT_NOFILE, &before_);
        listener::TearDown();
    }
    void refuses_cleanly_and_goes_on(const weft::listen_options&);

private:
    ::rlimit before_;
};
INSTANTIATE_ON_DRIVERS(without_descriptors);

void without_descriptors::refuses_cleanly_and_goes_on(const weft::listen_options& o) {
    run([&] {
        tcp_listener l = tcp_listener::bind("127.0.0.1:0", o).value();
        // Sockets of the clients are opened before there are none left.
        const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        std::vector<int> all = take_all_numbers();
        bool accepted = false;
        fiber server([&] {
            const auto s = l.accept();
            EXPECT_TRUE(s) << s.error().message();
            accepted = true;
        });
        const weft::endpoint to = l.local_endpoint();
        static_cast<void>(::connect(client, to.data(), to.size()));

        weft::testing::nothing_spare();
        const double began = cpu_seconds();
        while (l.refused_count() == 0) weft::this_fiber::sleep_for(1ms);
        weft::this_fiber::sleep_for(300ms);
        EXPECT_LT(cpu_seconds() - began, 0.05) << "it spins";
        char b;
        const auto n = ::recv(client, &b, 1, 0);
        EXPECT_TRUE(n == 0 || (n < 0 && errno == ECONNRESET)) << "it was not told";
        EXPECT_FALSE(accepted);

        for (const int n : all) ::close(n);
        ::close(client);
        tcp_stream c = tcp_stream::connect(to).value();
        server.join();
    });
}

// Nothing is refused while there is nothing to accept: the waiter waits for a connection alone, and
// does not look from time to time whether there is a descriptor for it.
TEST_P(without_descriptors, waits_for_a_connection_alone) {
    run([&] {
        tcp_listener l = any_listener();
        const std::vector<int> all = take_all_numbers();
        bool accepted = false;
        fiber server([&] { accepted = l.accept().has_value(); });
        weft::this_fiber::yield();
        EXPECT_EQ(loop().next_deadline(), weft::never);

        for (const int n : all) ::close(n);
        tcp_stream c = tcp_stream::connect(l.local_endpoint()).value();
        server.join();
        EXPECT_TRUE(accepted);
    });
}

TEST_P(without_descriptors, refuses_cleanly_and_resumes) { refuses_cleanly_and_goes_on({}); }
TEST_P(without_descriptors, refuses_cleanly_and_resumes_with_prefetched_accepts) {
    refuses_cleanly_and_goes_on({.multishot = true});
}

}  // namespace
