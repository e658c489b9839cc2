#include "weft/io/detail/io_operation.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "test/io/drivers.hpp"
#include "test/support/begun.hpp"
#include "weft/io/endpoint.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace std::chrono_literals;
using weft::detail::descriptor;
using weft::detail::descriptor_ref;
using weft::detail::io_entry;
using weft::detail::io_operation;
using weft::detail::io_request;

class an_io_operation : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(an_io_operation);

descriptor owned_of(int number) {
    std::error_code error;
    return descriptor(descriptor_ref::adopt(number, 0, error));
}

// The end of a pipe that is read, and there is nothing.
struct quiet_pipe {
    quiet_pipe() {
        std::array<int, 2> numbers{};
        EXPECT_EQ(::pipe2(numbers.data(), O_CLOEXEC | O_NONBLOCK), 0);
        reader = owned_of(numbers[0]);
        other_end = numbers[1];
    }
    quiet_pipe(const quiet_pipe&) = delete;
    quiet_pipe& operator=(const quiet_pipe&) = delete;
    ~quiet_pipe() { ::close(other_end); }

    descriptor reader;
    int other_end = -1;
};

// Waits to read, and `meanwhile` happens between the try and the waiter's enlisting, as a driver of
// another thread or a close there could have it.
template <class F>
class interrupted : public io_operation {
public:
    interrupted(const descriptor_ref& of, F meanwhile)
        : io_operation(io_request::read, true, of, &byte_, 1, 1, 5s, "a byte"),
          meanwhile_(meanwhile) {}

    bool ready() noexcept {
        if (io_operation::ready()) return true;
        meanwhile_();
        return false;
    }
    weft::result<std::size_t> take(const weft::waiter* w, weft::wait_status how) const noexcept {
        return some(w, how);
    }

private:
    F meanwhile_;
    inline static char byte_;
};

// The driver has taken the event off the system by then, and will not see it again.
TEST_P(an_io_operation, misses_no_event_that_comes_before_it_is_queued) {
    run([] {
        quiet_pipe p;
        const descriptor_ref of = p.reader.ref();
        interrupted warm(of, [] {});
        weft::fiber writer([&] { EXPECT_EQ(::write(p.other_end, "a", 1), 1); });
        EXPECT_TRUE(weft::await(warm));  // from now on it is watched
        writer.join();
        const auto event = [&] {
            EXPECT_EQ(::write(p.other_end, "b", 1), 1);
            // The poll driver polls only for operations that wait.
            while (GetParam() != weft::io_kind::poll &&
                   of.entry().is_unready(of.generation(), io_entry::readable))
                weft::detail::io_driver_here()->poll();
        };
        interrupted op(of, event);
        EXPECT_TRUE(weft::await(op));
    });
}

TEST_P(an_io_operation, is_not_queued_on_the_next_generation_of_its_fd) {
    run([] {
        quiet_pipe first;
        const int of_first = first.reader.number();
        std::unique_ptr<quiet_pipe> second;
        const auto reopened = [&] {
            first.reader.close();
            second = std::make_unique<quiet_pipe>();
            interrupted look(second->reader.ref(), [] {});
            EXPECT_FALSE(look.ready());
        };
        interrupted op(first.reader.ref(), reopened);
        const weft::result<std::size_t> r = weft::await(op);
        EXPECT_TRUE(!r && r.error() == weft::errc::closed);
        EXPECT_EQ(of_first, second->reader.number());
    });
}

// As if so many others had calls under way that its driver accepts no more of them.
TEST_P(an_io_operation, keeps_its_deadline_when_its_driver_takes_no_more_calls) {
    run([] {
        weft::testing::connection c = weft::testing::connected();
        c.server.set_options({.read_timeout = 300ms});  // longer than the peer takes
        io_entry& e = descriptor_ref::find(c.server.native_handle()).entry();
        weft::fiber peer([&] {
            e.life.fetch_add(io_entry::crowd / 2);
            EXPECT_TRUE(c.client.write_all(weft::bytes_of("a")));
        });
        std::string two(2, 0);
        const weft::transfer_result t = c.server.read_exact(weft::testing::room(two));
        EXPECT_EQ(t.bytes(), 1u);
        EXPECT_EQ(t.error(), std::errc::timed_out);
        peer.join();
        e.life.fetch_sub(io_entry::crowd / 2);
    });
}

// It begins in the line, and the rest is given to the driver.
TEST_P(an_io_operation, moved_from_queue_to_driver_loses_no_byte_to_a_stop) {
    run([] {
        weft::testing::connection c = weft::testing::connected();
        io_entry& e = descriptor_ref::find(c.server.native_handle()).entry();
        std::string three(3, 0);
        weft::transfer_result t;
        weft::fiber reader([&] { t = c.server.read_exact(weft::testing::room(three)); });
        e.life.fetch_add(io_entry::crowd / 2);
        weft::this_fiber::sleep_for(1ms);
        e.life.fetch_sub(io_entry::crowd / 2);
        ASSERT_EQ(::send(c.client.native_handle(), "a", 1, MSG_NOSIGNAL), 1);
        e.notify(io_entry::generation_of(e.life.load()), io_entry::readable);
        weft::this_fiber::yield();  // given to the driver, and not yet to the system
        ASSERT_EQ(::send(c.client.native_handle(), "b", 1, MSG_NOSIGNAL), 1);
        reader.request_stop();
        reader.join();
        EXPECT_EQ(t.error(), std::errc::operation_canceled);
        std::size_t came = t.bytes();
        if (came == 1) {
            c.server.set_options({.read_timeout = 1s});
            std::string next(1, 0);
            came += c.server.read(weft::testing::room(next)).value_or(0);
        }
        EXPECT_EQ(came, 2u) << "a byte is lost";
    });
}

class connects final : public io_operation {
public:
    connects(const descriptor_ref& of, const weft::endpoint& to)
        : io_operation(io_request::connect, false, of, nullptr, to.size(), 1, 5s, "a connection"),
          to_(to) {
        request_.data = to_.data();
    }
    weft::transfer_result take(const weft::waiter* w, weft::wait_status how) const noexcept {
        return outcome(w, how);
    }

private:
    weft::endpoint to_;
};

// The first part was its call; a driver that is given a second one reports that the first is under
// way. Nothing answers: the queue of the listener is full.
TEST_P(an_io_operation, does_not_give_to_a_driver_the_connection_that_it_has_begun) {
    run([] {
        const descriptor listener = owned_of(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ::sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t bytes = sizeof any;
        ASSERT_EQ(::bind(listener.number(), reinterpret_cast<::sockaddr*>(&any), bytes), 0);
        ASSERT_EQ(::listen(listener.number(), 0), 0);
        ::getsockname(listener.number(), reinterpret_cast<::sockaddr*>(&any), &bytes);
        const auto to =
            weft::endpoint::parse("127.0.0.1:" + std::to_string(ntohs(any.sin_port))).value();
        constexpr int nonblocking = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
        std::vector<descriptor> others;
        for (bool is_full = false; !is_full && others.size() != 16;) {
            others.push_back(owned_of(::socket(AF_INET, nonblocking, 0)));
            const int n = others.back().number();
            ::connect(n, reinterpret_cast<const ::sockaddr*>(&any), bytes);
            ::pollfd connected = {n, POLLOUT, 0};
            is_full = ::poll(&connected, 1, 50) == 0;
        }
        const descriptor socket = owned_of(::socket(AF_INET, nonblocking, 0));
        io_entry& e = socket.ref().entry();
        weft::transfer_result t;
        weft::fiber connecting([&] { t = weft::await(connects(socket.ref(), to)); });
        e.life.fetch_add(io_entry::crowd / 2);
        weft::this_fiber::sleep_for(1ms);
        e.life.fetch_sub(io_entry::crowd / 2);
        e.notify(io_entry::generation_of(e.life.load()), io_entry::writable);
        weft::this_fiber::sleep_for(20ms);
        EXPECT_FALSE(connecting.done()) << t.error().message();
        connecting.request_stop();
        connecting.join();
        EXPECT_EQ(t.error(), std::errc::operation_canceled);
    });
}

// The stop comes from another thread, and its message has not arrived when the operation starts its
// next part.
TEST_P(an_io_operation, leaves_its_queue_when_stopped_as_its_deadline_moves) {
    run([] {
        weft::testing::connection c = weft::testing::connected();
        c.server.set_options({.read_timeout = 200ms, .min_read_bytes_per_second = 10});
        const weft::time_point began = weft::steady_now();
        weft::fiber reader([&] {
            std::string some(100, 0);
            const weft::transfer_result t = c.server.read_exact(weft::testing::room(some));
            EXPECT_EQ(t.bytes(), 1u);
            EXPECT_EQ(t.error(), std::errc::operation_canceled);
        });
        weft::fiber stopper([&] {  // runs before the reader, in the round in which both are due
            weft::this_fiber::sleep_until(began + 190ms);
            std::thread([&] { reader.request_stop(); }).join();
        });
        weft::this_fiber::sleep_until(began + 100ms);
        EXPECT_TRUE(c.client.write_all(weft::bytes_of("x")));
        weft::this_fiber::sleep_until(began + 170ms);
        std::this_thread::sleep_until(began + 230ms);
        stopper.join();
        reader.join();
        EXPECT_TRUE(c.client.write_all(weft::bytes_of("y")));
        std::string next(8, 0);
        EXPECT_EQ(c.server.read(weft::testing::room(next)).value_or(0), 1u);
    });
}

// The timer of a deadline that has moved on asks a ring for the end of its call, and a stop comes
// before the ring has answered.
TEST_P(an_io_operation, reports_a_stop_that_comes_as_its_deadline_moves) {
    run([] {
        weft::testing::connection c = weft::testing::connected();
        c.server.set_options({.read_timeout = 200ms, .min_read_bytes_per_second = 10});
        const weft::time_point began = weft::steady_now();
        weft::fiber reader([&] {
            std::string some(100, 0);
            const weft::transfer_result t = c.server.read_exact(weft::testing::room(some));
            EXPECT_EQ(t.bytes(), 1u);
            EXPECT_EQ(t.error(), std::errc::operation_canceled);
        });
        weft::fiber stopper([&] {
            weft::this_fiber::sleep_until(began + 190ms);
            reader.request_stop();
        });
        weft::this_fiber::sleep_until(began + 100ms);
        EXPECT_TRUE(c.client.write_all(weft::bytes_of("x")));
        weft::this_fiber::sleep_until(began + 170ms);
        std::this_thread::sleep_until(began + 230ms);  // both timers are due in one round
        stopper.join();
        reader.join();
    });
}

// A coroutine reads beside the waits of its fiber. The deadline of a scope that has ended asks for
// the end of a wait that goes on, as some bytes have come by then.
TEST_P(an_io_operation, is_stopped_after_the_deadline_of_an_ended_scope) {
    run([] {
        weft::testing::connection c = weft::testing::connected();
        weft::fiber f([&] {
            bool done = false;
            std::optional<weft::timeout_scope> limit(std::in_place, 20ms);
            const weft::testing::begun reads = [](weft::tcp_stream& s,
                                                  bool& done) -> weft::testing::begun {
                std::string three(3, 0);
                static_cast<void>(co_await s.async_read_exact(weft::testing::room(three)));
                done = true;
            }(c.server, done);
            limit.reset();
            EXPECT_EQ(::send(c.client.native_handle(), "x", 1, MSG_NOSIGNAL), 1);
            std::this_thread::sleep_for(30ms);
            try {
                weft::this_fiber::sleep_for(1h);
            } catch (const weft::stopped& s) {
                EXPECT_EQ(s.reason, weft::stop_reason::user);
            }
            const weft::shield until_the_end;
            weft::this_fiber::sleep_for(20ms);
            EXPECT_TRUE(done);
        });
        weft::this_fiber::sleep_for(60ms);
        f.request_stop();
        f.join();
    });
}

}  // namespace
