#include "weft/io/detail/connect_by_name.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/io/drivers.hpp"
#include "test/io/known_names.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace std::chrono_literals;
using weft::endpoint;
using weft::fiber;
using weft::ip_address;
using weft::tcp_stream;
using weft::testing::descriptor_count;
using weft::testing::known_name;

constexpr auto any_time = weft::no_timeout;

// An address that does not answer: its listener's queue is full, so that the system leaves further
// connections unanswered.
class dead_address {
public:
    // Port zero: any.
    explicit dead_address(endpoint at) {
        listener_ = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int on = 1;
        ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (::bind(listener_, at.data(), at.size()) != 0 || ::listen(listener_, 0) != 0) return;
        at = endpoint::of_socket(listener_);
        port_ = at.port();
        for (int i = 0; i < 16 && !is_dead_; ++i) {
            const int s = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            static_cast<void>(::connect(s, at.data(), at.size()));
            clients_.push_back(s);
            ::tcp_info info{};
            ::socklen_t bytes = sizeof info;
            is_dead_ = ::getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
                       info.tcpi_state == TCP_SYN_SENT;
        }
    }
    dead_address(const dead_address&) = delete;
    ~dead_address() {
        for (const int s : clients_) ::close(s);
        ::close(listener_);
    }
    bool is_dead() const { return is_dead_; }
    std::uint16_t port() const { return port_; }

private:
    int listener_;
    std::uint16_t port_ = 0;
    std::vector<int> clients_;
    bool is_dead_ = false;
};

// One port at three addresses: 127.0.0.3 has no socket, 127.0.0.2 does not answer, and 127.0.0.1
// and ::1 have a listener that accepts every connection.
class net {
public:
    net() {
        for (int i = 0; i < 20 && !whole(); ++i) {
            dead_.reset();
            four_ = weft::testing::any_listener();
            port_ = four_.local_endpoint().port();
            if (auto six = weft::tcp_listener::bind(endpoint(ip_address::loopback_v6(), port_)))
                six_ = *std::move(six);
            else
                continue;
            dead_.emplace(endpoint(ip_address::v4(127, 0, 0, 2), port_));
        }
        EXPECT_TRUE(whole());
        for (weft::tcp_listener* l : {&four_, &six_})
            taking_.emplace_back([l] {
                while (const auto s = l->accept()) {
                }
            });
    }
    ~net() {
        for (fiber& f : taking_) f.request_stop();
        for (fiber& f : taking_) f.join();
    }
    std::string at(const known_name& n) const { return n.name() + ":" + std::to_string(port_); }
    std::uint16_t port() const { return port_; }

private:
    bool whole() const { return dead_ && dead_->is_dead(); }

    std::uint16_t port_ = 0;
    weft::tcp_listener four_;
    weft::tcp_listener six_;
    std::optional<dead_address> dead_;
    std::vector<fiber> taking_;
};

long open_sockets() {
    long n = 0;
    for (const auto& d : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        n += read_symlink(d.path(), gone).string().starts_with("socket:");
    }
    return n;
}
void expect_descriptors(long count) {
    for (int i = 0; i < 5000 && descriptor_count() != count; ++i)
        weft::this_fiber::sleep_for(1ms);  // the listener closes its ends when it comes to it
    EXPECT_EQ(descriptor_count(), count);
}

// Which address: the same at both ends.
std::string reached(const weft::result<tcp_stream>& s) {
    return s ? s->local_endpoint().address().to_string() : s.error().message();
}

endpoint at_port_1(const char* text) { return {ip_address::parse(text).value(), 1}; }

TEST(connect_by_name, alternates_families_and_keeps_their_order) {
    const auto turns = [](std::vector<const char*> from) {
        std::vector<endpoint> all;
        for (const char* t : from) all.push_back(at_port_1(t));
        weft::detail::take_turns(all);
        std::vector<std::string> texts;
        for (const endpoint& e : all) texts.push_back(e.address().to_string());
        return texts;
    };
    using texts = std::vector<std::string>;
    EXPECT_EQ(turns({}), texts{});
    EXPECT_EQ(turns({"::1"}), texts{"::1"});
    EXPECT_EQ(turns({"::1", "::2", "::3", "1.0.0.1", "1.0.0.2"}),
              (texts{"::1", "1.0.0.1", "::2", "1.0.0.2", "::3"}));
    EXPECT_EQ(turns({"1.0.0.1", "1.0.0.2", "1.0.0.3", "::1"}),
              (texts{"1.0.0.1", "::1", "1.0.0.2", "1.0.0.3"}));
    EXPECT_EQ(turns({"1.0.0.2", "1.0.0.1"}), (texts{"1.0.0.2", "1.0.0.1"}));
}

class by_name : public weft::testing::on_each_driver {
protected:
    // f(connect) for both spellings.
    template <class F>
    void run_both(F f) {
        run([&] {
            f([](const std::string& where, weft::duration timeout, weft::duration delay) {
                return tcp_stream::connect(where, timeout, delay);
            });
            f([](const std::string& where, weft::duration timeout, weft::duration delay) {
                auto t = [&]() -> weft::task<weft::result<tcp_stream>> {
                    co_return co_await tcp_stream::async_connect(where, timeout, delay);
                };
                return weft::await(t());
            });
        });
    }
};
INSTANTIATE_ON_DRIVERS(by_name);

weft::duration measured_from(weft::time_point begun) { return weft::steady_now() - begun; }

TEST_P(by_name, an_unreachable_address_costs_one_delay) {
    const known_name n("dead-first.known", {"127.0.0.2", "127.0.0.1"});
    run_both([&](auto connect) {
        const net here;
        const auto begun = weft::steady_now();
        EXPECT_EQ(reached(connect(here.at(n), any_time, 60ms)), "127.0.0.1");
        EXPECT_GE(measured_from(begun), 60ms);
        EXPECT_LT(measured_from(begun), 3s);
    });
}

TEST_P(by_name, an_address_that_refuses_costs_no_delay) {
    const known_name n("refused-first.known", {"127.0.0.3", "127.0.0.3", "127.0.0.1"});
    run_both([&](auto connect) {
        const net here;
        EXPECT_EQ(reached(connect(here.at(n), 4s, 1h)), "127.0.0.1");
    });
}

// The address that refuses is tried while the one that does not answer is pending, and the next
// does not wait for the delay.
TEST_P(by_name, the_next_attempt_starts_when_the_last_one_fails) {
    const known_name n("mixed.known", {"127.0.0.2", "127.0.0.3", "127.0.0.1"});
    run_both([&](auto connect) {
        const net here;
        const auto begun = weft::steady_now();
        EXPECT_EQ(reached(connect(here.at(n), any_time, 500ms)), "127.0.0.1");
        EXPECT_LT(measured_from(begun), 1s);
    });
}

TEST_P(by_name, the_other_family_is_tried_second) {
    const known_name n("families.known", {"127.0.0.2", "127.0.0.1", "::1"});
    run_both([&](auto connect) {
        const net here;
        EXPECT_EQ(reached(connect(here.at(n), any_time, 20ms)), "::1");
    });
}

TEST_P(by_name, an_answer_from_the_first_address_starts_no_other_attempt) {
    const known_name n("answers.known", {"::1", "127.0.0.1", "127.0.0.2"});
    run_both([&](auto connect) {
        const net here;
        EXPECT_EQ(reached(connect(here.at(n), any_time, 1h)), "::1");
    });
}

TEST_P(by_name, the_last_error_is_reported_if_none_answers) {
    const known_name refused("refused.known", {"127.0.0.3", "127.0.0.3"});
    const known_name dead("dead.known", {"127.0.0.2", "127.0.0.2", "127.0.0.3"});
    run_both([&](auto connect) {
        const net here;
        EXPECT_EQ(connect(here.at(refused), any_time, 1h).error(), std::errc::connection_refused);
        EXPECT_EQ(connect("no such name:80", any_time, 1h).error().category(),
                  weft::resolver_category());
        EXPECT_EQ(connect("without-a-port", any_time, 1h).error(), std::errc::invalid_argument);
        const auto begun = weft::steady_now();
        EXPECT_EQ(connect(here.at(dead), 100ms, 10ms).error(), std::errc::timed_out);
        EXPECT_GE(measured_from(begun), 100ms);
        EXPECT_LT(measured_from(begun), 3s);
    });
}

TEST_P(by_name, the_timeout_covers_the_name_look_up) {
    known_name silent("silent-for-connect.known", {"127.0.0.1"});
    silent.hold();
    weft::detail::default_resolver().clear_cache();
    run_both([&](auto connect) {
        EXPECT_EQ(connect("silent-for-connect.known:80", 20ms, 10ms).error(), std::errc::timed_out);
        const weft::timeout_scope limit(20ms);
        EXPECT_EQ(connect("silent-for-connect.known:80", any_time, 10ms).error(),
                  std::errc::operation_canceled);
    });
}

TEST_P(by_name, a_stop_ends_all_attempts) {
    const known_name n("stopped.known", {"127.0.0.2", "127.0.0.2", "127.0.0.2"});
    run_both([&](auto connect) {
        const net here;
        const long before = descriptor_count();
        std::error_code how;
        fiber f([&] { how = connect(here.at(n), any_time, 10ms).error(); });
        while (descriptor_count() < before + 3) weft::this_fiber::sleep_for(1ms);
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        expect_descriptors(before);
    });
}

TEST_P(by_name, losing_attempts_are_closed_before_the_result_is_returned) {
    const known_name n("losers.known", {"127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.1"});
    run_both([&](auto connect) {
        const net here;
        const long before = descriptor_count();
        {
            const auto s = connect(here.at(n), any_time, 10ms);
            EXPECT_EQ(reached(s), "127.0.0.1");
            EXPECT_LE(descriptor_count(), before + 2) << "the two ends of the winner";
        }
        expect_descriptors(before);
    });
}

TEST_P(by_name, a_killed_fiber_leaves_no_socket_open) {
    const dead_address dead(endpoint(ip_address::v4(127, 0, 0, 2), 0));
    ASSERT_TRUE(dead.is_dead());
    const known_name n("killed.known", {"127.0.0.2", "127.0.0.2"});
    const std::string where = "killed.known:" + std::to_string(dead.port());
    const long before = open_sockets();
    {
        fiber stuck(
            [&] {
                const weft::shield held;  // so that asking is not enough
                static_cast<void>(!tcp_stream::connect(where, any_time, 10ms));
                ADD_FAILURE() << "went on";
            },
            {.on = loop()});
        while (open_sockets() != before + 2) loop().run_once(weft::steady_now() + 1ms);
        stuck.detach();
    }
    end_loop();  // unwinds it
    EXPECT_EQ(open_sockets(), before);
}

// A coroutine outside any flow.
struct plain_frame {
    struct promise_type {
        plain_frame get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};

// A waiter is left, stopped, late, killed or served, at any time.
TEST_P(by_name, a_thousand_rounds_leak_no_descriptor) {
    const known_name n("storm.known", {"127.0.0.2", "127.0.0.3", "::1", "127.0.0.2", "127.0.0.1"});
    const known_name slow("slow.known", {"127.0.0.2", "127.0.0.2", "127.0.0.1"});
    run([&] {
        const net here;
        const long before = descriptor_count();
        std::atomic<int> served = 0;
        const auto round = [&](unsigned seed) {
            std::minstd_rand lot(seed);
            const auto random = [&](unsigned below) {
                return static_cast<unsigned>(lot() >> 8) % below;
            };
            const std::string where = here.at(random(2) == 0 ? n : slow);
            const auto moment = random(40) * 1ms;
            switch (random(4)) {
                case 0:
                    served += tcp_stream::connect(where, any_time, 10ms).has_value();
                    break;
                case 1:
                    served += tcp_stream::connect(where, moment, 10ms).has_value();
                    break;
                case 2: {
                    fiber f(
                        [&] { served += tcp_stream::connect(where, any_time, 10ms).has_value(); });
                    weft::this_fiber::sleep_for(moment);
                    f.request_stop();
                    f.join();
                    break;
                }
                case 3: {
                    const auto wait = [](std::string to, std::atomic<int>& s) -> plain_frame {
                        s += (co_await tcp_stream::async_connect(to, any_time, 10ms)).has_value();
                    };
                    const plain_frame f = wait(where, served);
                    weft::this_fiber::sleep_for(moment);
                    f.handle.destroy();
                    break;
                }
            }
        };
        std::vector<fiber> all;
        for (unsigned i = 0; i < 50; ++i)
            all.emplace_back([&, i] {
                for (unsigned j = 0; j < 20; ++j) round(i * 20 + j + 1);
            });
        for (fiber& f : all) f.join();
        EXPECT_GT(served, 250);
        EXPECT_LT(served, 1000);
        expect_descriptors(before);
    });
}

TEST(connect_by_name, serves_a_plain_thread) {
    const known_name n("thread.known", {"127.0.0.2", "127.0.0.3", "127.0.0.1"});
    const known_name dead("thread-dead.known", {"127.0.0.2", "127.0.0.2"});
    weft::loop l;
    fiber main(
        [&] {
            const net here;
            const long before = open_sockets();
            std::string first;
            std::error_code second;
            std::atomic<bool> through = false;
            std::thread t([&] {
                for (int i = 0; i < 20; ++i)
                    first = reached(tcp_stream::connect(here.at(n), any_time, 10ms));
                second = tcp_stream::connect(here.at(dead), 40ms, 10ms).error();
                through = true;
            });
            while (!through) weft::this_fiber::sleep_for(1ms);
            t.join();
            EXPECT_EQ(first, "127.0.0.1");
            EXPECT_EQ(second, std::errc::timed_out);
            for (int i = 0; i < 5000 && open_sockets() != before; ++i)
                weft::this_fiber::sleep_for(1ms);
            EXPECT_EQ(open_sockets(), before);
        },
        {.on = l});
    l.run();
}

}  // namespace
