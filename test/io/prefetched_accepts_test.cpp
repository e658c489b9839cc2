#include "weft/io/detail/prefetched_accepts.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "test/io/names.hpp"
#include "test/support/allocation_fails.hpp"
#include "weft/io/detail/reserve_fd.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::tcp_listener;
using weft::tcp_stream;
using weft::testing::descriptor_count;

class prefetched_accept : public weft::testing::on_each_driver {
protected:
    static tcp_listener bound() {
        return tcp_listener::bind("127.0.0.1:0", {.multishot = true}).value();
    }
    static std::vector<tcp_stream> clients_of(const tcp_listener& l, int n) {
        std::vector<tcp_stream> all;
        for (int i = 0; i < n; ++i) all.push_back(tcp_stream::connect(l.local_endpoint()).value());
        return all;
    }
};
INSTANTIATE_ON_DRIVERS(prefetched_accept);

TEST_P(prefetched_accept, returns_connections_in_order_of_arrival) {
    run([] {
        tcp_listener l = bound();
        for (int round = 0; round < 3; ++round) {
            fiber first([&] { EXPECT_TRUE(l.accept()); });
            weft::this_fiber::yield();
            auto clients = clients_of(l, 21);
            first.join();
            for (int i = 1; i < 21; ++i)
                EXPECT_EQ(l.accept()->remote_endpoint(),
                          clients.at(std::size_t(i)).local_endpoint());
        }
    });
}

TEST_P(prefetched_accept, limits_unclaimed_connections_and_leaks_none) {
    run([] {
        const long before = descriptor_count();
        {
            tcp_listener l = bound();
            fiber server([&] { EXPECT_TRUE(l.accept()); });
            weft::this_fiber::sleep_for(1ms);
            constexpr int n = 300;
            const auto clients = clients_of(l, n);
            server.join();
            weft::this_fiber::sleep_for(2ms);
            const long taken = descriptor_count() - before - 2 - n;
            EXPECT_LE(taken, 2 * long(weft::detail::prefetched_accepts::most));
            const auto more = clients_of(l, 10);
            weft::this_fiber::sleep_for(2ms);
            EXPECT_EQ(descriptor_count() - before - 2 - n - 10, taken) << "nobody has asked since";
            for (int i = 1; i < n + 10; ++i) EXPECT_TRUE(l.accept());
        }
        weft::this_fiber::sleep_for(2ms);
        EXPECT_EQ(descriptor_count(), before);
    });
}

TEST_P(prefetched_accept, starts_later_after_a_lack_of_memory) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "allocations do not fail under it";
    run([] {
        tcp_listener l = bound();
        std::optional<weft::testing::allocation_fails> no_memory;
        fiber server([&] {
            no_memory.emplace(1);
            EXPECT_TRUE(l.accept());
        });
        weft::this_fiber::yield();
        no_memory.reset();
        auto clients = clients_of(l, 1);
        server.join();
    });
}

TEST_P(prefetched_accept, closes_connections_that_were_not_accepted) {
    run([] {
        const long before = descriptor_count();
        for (const bool by_destructor : {false, true}) {
            tcp_listener l = bound();
            fiber server([&] { EXPECT_TRUE(l.accept()); });
            weft::this_fiber::yield();
            auto clients = clients_of(l, 20);
            server.join();
            if (by_destructor)
                l = tcp_listener();
            else
                l.close();
            for (tcp_stream& c : clients) {
                std::string b(1, 0);
                c.set_options({.read_timeout = 5s});
                const auto n = c.read(room(b));
                EXPECT_TRUE(&c == &clients[0] || !n || *n == 0);
                EXPECT_NE(n.error(), std::errc::timed_out);
            }
        }
        weft::this_fiber::sleep_for(2ms);
        EXPECT_EQ(descriptor_count(), before);
    });
}

TEST_P(prefetched_accept, a_waiting_accept_can_be_stopped_and_killed) {
    const long before = descriptor_count();
    tcp_listener l = bound();
    run([&] {
        std::vector<fiber> all;
        std::vector<std::error_code> how(3);
        for (int i = 0; i < 3; ++i)
            all.emplace_back([&, i] { how.at(std::size_t(i)) = l.accept().error(); });
        weft::this_fiber::sleep_for(1ms);
        all[1].request_stop();
        all[1].join();
        EXPECT_EQ(how[1], std::errc::operation_canceled);
        const auto clients = clients_of(l, 2);
        all[0].join();
        all[2].join();
        EXPECT_FALSE(how[0]);
        EXPECT_FALSE(how[2]);
        EXPECT_FALSE([&] {
            const weft::timeout_scope limit(2ms);
            return l.accept().has_value();
        }());
    });
    fiber stuck(
        [&] {
            const weft::shield held;
            static_cast<void>(l.accept());
            ADD_FAILURE() << "went on";
        },
        {.on = loop()});
    loop().run_once(weft::steady_now());
    stuck.detach();
    end_loop();
    l.close();
    EXPECT_LE(descriptor_count(), before);
}

TEST_P(prefetched_accept, a_close_ends_all_waiting_accepts) {
    run([] {
        tcp_listener l = bound();
        std::vector<fiber> all;
        int closed = 0;
        for (int i = 0; i < 3; ++i)
            all.emplace_back([&] { closed += l.accept().error() == weft::errc::closed; });
        weft::this_fiber::sleep_for(1ms);
        l.close();
        for (fiber& f : all) f.join();
        EXPECT_EQ(closed, 3);
        EXPECT_EQ(l.accept().error(), weft::errc::closed);
    });
}

// From the second loop's accept on, each accept takes its own connections; no connection and no
// waiter is left behind.
TEST_P(prefetched_accept, several_loops_share_a_listener) {
    constexpr int rounds = 30;
    constexpr int each = 8;
    for (int round = 0; round < rounds; ++round) {
        tcp_listener l = bound();
        std::atomic<int> accepted = 0;
        std::vector<std::thread> others;
        const auto serve = [&] {
            while (l.accept()) ++accepted;
        };
        for (int i = 0; i < 2; ++i)
            others.emplace_back([&, i] {
                if (i == 1 && round % 3 == 0) return serve();  // a plain thread
                weft::loop other(weft::make_io_driver(GetParam()));
                fiber f(serve, {.on = other});
                other.run();
            });
        run([&] {
            fiber server(serve);
            weft::this_fiber::yield();
            const auto clients = clients_of(l, each);
            const auto until = weft::steady_now() + 5s;
            while (accepted != each && weft::steady_now() < until)
                weft::this_fiber::sleep_for(100us);
            EXPECT_EQ(accepted, each);
            l.close();
            server.join();
        });
        for (std::thread& t : others) t.join();
    }
}

TEST_P(prefetched_accept, another_loop_takes_over_when_one_has_ended) {
    const long before = descriptor_count();
    {
        tcp_listener l = bound();
        std::vector<tcp_stream> clients;
        run([&] {
            fiber server([&] { EXPECT_TRUE(l.accept()); });
            weft::this_fiber::yield();
            clients = clients_of(l, 20);
            server.join();
        });
        end_loop();
        SetUp();
        run([&] {
            for (int i = 1; i < 20; ++i)
                EXPECT_EQ(l.accept()->remote_endpoint(),
                          clients.at(std::size_t(i)).local_endpoint());
            fiber later([&] { EXPECT_TRUE(l.accept()); });
            weft::this_fiber::yield();
            clients.push_back(tcp_stream::connect(l.local_endpoint()).value());
            later.join();
        });
    }
    end_loop();
    EXPECT_LE(descriptor_count(), before);
}

TEST_P(prefetched_accept, an_accept_on_a_plain_thread_keeps_the_listener_nonblocking) {
    tcp_listener l = bound();
    run([&] {
        const auto client = clients_of(l, 1);
        EXPECT_TRUE(l.accept());
    });
    std::atomic<bool> waits = false;
    std::thread plain([&] {
        waits = true;
        EXPECT_TRUE(l.accept());
    });
    while (!waits) std::this_thread::yield();
    std::this_thread::sleep_for(2ms);  // so that it does wait, mostly
    EXPECT_NE(::fcntl(l.native_handle(), F_GETFL) & O_NONBLOCK, 0);
    run([&] { static_cast<void>(clients_of(l, 1)); });
    plain.join();
}

// The system ends a multishot accept if the listener does not block.
TEST(reserve_fd, keeps_a_listener_blocking_while_a_driver_serves_it) {
    tcp_listener l = weft::testing::any_listener();
    const auto ahead = std::make_shared<weft::detail::prefetched_accepts>(
        weft::detail::descriptor_ref::find(l.native_handle()));
    const auto driver = weft::make_io_driver(weft::io_kind::poll);
    ASSERT_TRUE(ahead->serve(*driver));
    ASSERT_TRUE(ahead->begin(*driver));
    ASSERT_EQ(::fcntl(l.native_handle(), F_GETFL) & O_NONBLOCK, 0);
    weft::detail::reserve_fd r(ahead);
    const tcp_stream client = tcp_stream::connect(l.local_endpoint()).value();
    r.refuse(weft::detail::descriptor_ref::find(l.native_handle()));
    EXPECT_EQ(r.refused_count(), 1u);
    EXPECT_EQ(::fcntl(l.native_handle(), F_GETFL) & O_NONBLOCK, 0);
    ahead->leave(*driver);
}

}  // namespace
