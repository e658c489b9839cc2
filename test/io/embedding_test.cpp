// A weft loop in a foreign loop, which uses only native_handle(), next_deadline() and
// run_once(now()), or run_until_idle() with a budget.

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "test/io/names.hpp"
#include "test/support/nothing_spare.hpp"
#include "weft/io/fd_watch.hpp"

#if WEFT_TEST_LIBUV
#include <uv.h>
#endif

namespace {

using namespace weft::testing::io_names;
using weft::io_kind;
using weft::steady_now;
using weft::time_point;

// A foreign loop, with a loop of weft in it.
class host {
public:
    // `longest`: the longest sleep, also where weft names no deadline.
    host(weft::loop& l, weft::duration longest) : loop_(l), longest_(longest) {}
    virtual ~host() = default;

    // Until over(), which is checked after each of weft's turns, or until the time has come.
    // Returns how many turns weft had whose cause was not the time.
    virtual int drive(time_point until, const std::function<bool()>& over) = 0;

protected:
    // How long it may sleep.
    time_point sleep_end(time_point end) const {
        return std::min({end, loop_.next_deadline(), weft::after(loop_.now(), longest_)});
    }
    // Rounded up, so that no deadline is early.
    static int milliseconds_until(time_point t) {
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(t - steady_now()).count();
        return static_cast<int>(std::max<decltype(ms)>(ms, 0));
    }

    weft::loop& loop_;
    weft::duration longest_;
};

class epoll_host final : public host {
public:
    using host::host;
    int drive(time_point until, const std::function<bool()>& over) override {
        const int set = ::epoll_create1(EPOLL_CLOEXEC);
        ::epoll_event e{};
        e.events = EPOLLIN;
        EXPECT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, loop_.native_handle(), &e), 0);
        int turns = 0;
        while (!over()) {
            const int n = ::epoll_wait(set, &e, 1, milliseconds_until(sleep_end(until)));
            EXPECT_TRUE(n >= 0 || errno == EINTR);
            if (n < 0) continue;
            if (n == 0 && steady_now() >= until) break;
            loop_.run_once(loop_.now());
            ++turns;
        }
        ::close(set);
        return turns;
    }
};

#if WEFT_TEST_LIBUV
class uv_host final : public host {
public:
    using host::host;
    int drive(time_point until, const std::function<bool()>& over) override {
        until_ = until;
        over_ = &over;
        turns_ = 0;
        EXPECT_EQ(::uv_loop_init(&uv_), 0);
        EXPECT_EQ(::uv_poll_init(&uv_, &poll_, loop_.native_handle()), 0);
        EXPECT_EQ(::uv_timer_init(&uv_, &timer_), 0);
        poll_.data = timer_.data = this;
        ::uv_poll_start(&poll_, UV_READABLE,
                        [](::uv_poll_t* p, int, int) { static_cast<uv_host*>(p->data)->turn(); });
        set_timer();
        ::uv_run(&uv_, UV_RUN_DEFAULT);  // until both handles are closed
        EXPECT_EQ(::uv_loop_close(&uv_), 0);
        return turns_;
    }

private:
    void turn() {
        loop_.run_once(loop_.now());
        ++turns_;
        set_timer();
    }
    void set_timer() {
        if ((*over_)()) return end();
        sleep_end_ = sleep_end(until_);
        sleep();
    }
    void sleep() {
        ::uv_update_time(&uv_);
        ::uv_timer_start(
            &timer_, [](::uv_timer_t* t) { static_cast<uv_host*>(t->data)->time_has_come(); },
            static_cast<std::uint64_t>(milliseconds_until(sleep_end_)), 0);
    }
    void time_has_come() {
        if (steady_now() >= until_)
            end();
        else if (steady_now() >= sleep_end_)
            turn();
        else
            sleep();  // a timer of libuv's may be a little early
    }
    void end() {
        ::uv_close(reinterpret_cast<::uv_handle_t*>(&poll_), nullptr);
        ::uv_close(reinterpret_cast<::uv_handle_t*>(&timer_), nullptr);
    }

    ::uv_loop_t uv_;
    ::uv_poll_t poll_;
    ::uv_timer_t timer_;
    time_point until_;
    time_point sleep_end_;
    const std::function<bool()>* over_ = nullptr;
    int turns_ = 0;
};
#endif

// A game: it draws a frame, and what is left of it is weft's.
class tick_host final : public host {
public:
    using host::host;
    int drive(time_point until, const std::function<bool()>& over) override {
        int turns = 0;
        while (!over() && steady_now() < until) {
            turns += loop_.run_until_idle(weft::after(loop_.now(), 500us)) != 0;
            std::this_thread::yield();
        }
        return turns;
    }
};

enum class host_kind { epoll, libuv, tick };

class embedding : public ::testing::TestWithParam<std::tuple<io_kind, host_kind>> {
protected:
    void SetUp() override {
        const auto [driver, kind] = GetParam();
        const char* why = nullptr;
        if (driver == io_kind::io_uring && weft::make_driver_uring(&why) == nullptr)
            GTEST_SKIP() << "io_uring: " << why;
        loop_ = std::make_unique<weft::loop>(weft::make_io_driver(driver));
        // A poll driver reports only wakes, so it is polled each millisecond.
        const weft::duration longest = driver == io_kind::poll ? 1ms : 5000ms;
        if (kind == host_kind::epoll) host_ = std::make_unique<epoll_host>(*loop_, longest);
        if (kind == host_kind::tick) host_ = std::make_unique<tick_host>(*loop_, longest);
#if WEFT_TEST_LIBUV
        if (kind == host_kind::libuv) host_ = std::make_unique<uv_host>(*loop_, longest);
#endif
        if (host_ == nullptr) GTEST_SKIP() << "built without libuv (libuv1-dev)";
    }

    weft::loop& loop() { return *loop_; }
    int drive(weft::duration longest, const std::function<bool()>& over) {
        return host_->drive(weft::after(steady_now(), longest), over);
    }
    // f in a fiber, and the host until it has ended.
    template <class F>
    void run(F f) {
        fiber main(std::move(f), {.on = *loop_});
        drive(10s, [&] { return main.done(); });
        ASSERT_TRUE(main.done());
        main.join();
    }

private:
    std::unique_ptr<weft::loop> loop_;
    std::unique_ptr<host> host_;
};
std::string name_of(const std::tuple<io_kind, host_kind>& p) {
    const char* const hosts[] = {"epoll", "libuv", "ticks"};
    return std::string(hosts[static_cast<int>(std::get<1>(p))]) + "_by_" +
           weft::testing::name_of(std::get<0>(p));
}
INSTANTIATE_TEST_SUITE_P(
    in, embedding,
    ::testing::Combine(::testing::Values(io_kind::epoll, io_kind::io_uring, io_kind::poll),
                       ::testing::Values(host_kind::epoll, host_kind::libuv, host_kind::tick)),
    [](const auto& i) { return name_of(i.param); });

void echo(weft::tcp_stream& s) {
    std::string b(64, 0);
    while (const auto n = s.read(room(b)).value_or(0))
        if (!s.write_all(bytes_of(b).first(n))) return;
}

// Sockets, timers, fibers that only yield, and what another thread posts, all at once.
TEST_P(embedding, loses_nothing) {
    constexpr int connections = 4, rounds = 50, posts = 500;
    int echoed = 0;
    int slept = 0;
    int came = 0;
    std::thread other([&] {
        for (int i = 0; i < posts; ++i) {
            loop().post([&] { ++came; });
            if (i % 50 == 0) std::this_thread::yield();
        }
    });
    run([&] {
        std::vector<fiber> all;
        for (int i = 0; i < connections; ++i)
            all.emplace_back([&, i] {
                connection c = connected();
                fiber server([&] { echo(c.server); });
                for (int round = 0; round < rounds; ++round) {
                    const std::string sent = std::to_string(i * rounds + round);
                    std::string got(sent.size(), 0);
                    if (!c.client.write_all(bytes_of(sent)) || !c.client.read_exact(room(got)))
                        return;
                    echoed += got == sent;
                }
                c.client.close();
                server.join();
            });
        for (int i = 0; i < 10; ++i)
            all.emplace_back([&, i] {
                weft::this_fiber::sleep_for(i * 1ms);
                for (int turn = 0; turn < 100; ++turn) weft::this_fiber::yield();
                ++slept;
            });
        for (fiber& f : all) f.join();
    });
    EXPECT_EQ(echoed, connections * rounds);
    EXPECT_EQ(slept, 10);
    drive(10s, [&] { return came == posts; });
    EXPECT_EQ(came, posts);
    other.join();
}

// What was ready before the host first called native_handle().
TEST_P(embedding, runs_what_was_posted_before_the_start) {
    int ran = 0;
    fiber early([&] { ++ran; }, {.on = loop()});
    std::thread([&] { loop().post([&] { ++ran; }); }).join();
    // Shorter than the host's own sleep.
    drive(3s, [&] { return ran == 2; });
    EXPECT_EQ(ran, 2);
    early.join();
}

// Not early, and not by another wake of the host: there is none.
TEST_P(embedding, meets_its_deadlines) {
    std::vector<weft::duration> late;
    run([&] {
        std::vector<fiber> all;
        for (int i = 1; i <= 5; ++i)
            all.emplace_back([&, i] {
                const time_point until = loop().now() + i * 4ms;
                weft::this_fiber::sleep_until(until);
                late.push_back(loop().now() - until);
            });
        for (fiber& f : all) f.join();
    });
    ASSERT_EQ(late.size(), 5u);
    for (const weft::duration d : late) {
        EXPECT_GE(d, 0ms);
        EXPECT_LT(d, 2s) << "the host slept on";
    }
}

// A deadline that comes nearer while the host sleeps: by a post of another thread.
TEST_P(embedding, is_notified_of_a_nearer_deadline) {
    bool rang = false;
    fiber far([] { weft::this_fiber::sleep_for(1h); }, {.on = loop()});
    drive(5ms, [] { return false; });
    std::thread other([&] {
        fiber near(
            [&] {
                weft::this_fiber::sleep_for(2ms);
                rang = true;
            },
            {.on = loop()});
        near.detach();
    });
    drive(3s, [&] { return rang; });
    EXPECT_TRUE(rang);
    other.join();
    far.request_stop();
    drive(3s, [&] { return far.done(); });
    far.join();
}

// One fiber waits for a socket, another for an hour to pass, and the host is not woken for either.
TEST_P(embedding, does_not_wake_the_host_while_nothing_happens) {
    connection c;
    run([&] { c = connected(); });
    int begun = 0;
    fiber reader(
        [&] {
            std::string s(1, 0);
            ++begun;
            EXPECT_EQ(c.server.read(room(s)).value_or(9), 1u);
        },
        {.on = loop()});
    fiber sleeper(
        [&] {
            ++begun;
            weft::this_fiber::sleep_for(1h);
        },
        {.on = loop()});
    drive(10s, [&] { return begun == 2; });
    // The loop becomes idle: memory that was used before is released first, a part each second, and
    // then the next deadline that the loop names is the sleeper's.
    weft::testing::nothing_spare();
    for (int i = 0; i < 10 && drive(5ms, [] { return false; }) != 0; ++i) {
    }
    drive(20s, [&] { return loop().next_deadline() - loop().now() > 30min; });
    const std::uint64_t before = loop().turn_count();
    const int turns = drive(50ms, [] { return false; });
    EXPECT_EQ(loop().turn_count(), before);
    // Those are a poll driver's own, see above.
    if (std::get<0>(GetParam()) != io_kind::poll) {
        EXPECT_EQ(turns, 0);
    }
    run([&] { EXPECT_TRUE(c.client.write_all(bytes_of("x"))); });
    drive(10s, [&] { return reader.done(); });
    reader.join();
    sleeper.request_stop();
    drive(10s, [&] { return sleeper.done(); });
    sleeper.join();
}

// From outside of the host's thread, while it sleeps, mostly.
TEST_P(embedding, is_woken_by_events_from_outside) {
    const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    connection c;
    bool open = false;
    int came = 0;
    fiber reader(
        [&] {
            c = connected();
            open = true;
            std::string s(1, 0);
            for (; came < 3; ++came) EXPECT_EQ(c.server.read(room(s)).value_or(9), 1u);
            const weft::fd_watch watch(event);
            for (; came < 6; ++came) {
                EXPECT_TRUE(watch.wait(weft::fd_events::read));
                std::uint64_t count;
                EXPECT_EQ(::read(event, &count, sizeof count), static_cast<int>(sizeof count));
            }
        },
        {.on = loop()});
    drive(10s, [&] { return open; });
    std::atomic<int> seen = 0;
    std::thread other([&] {
        const std::uint64_t one = 1;
        for (int i = 0; i < 6; ++i) {
            while (seen.load() != i) std::this_thread::yield();
            std::this_thread::sleep_for(2ms);
            if (i < 3)
                EXPECT_EQ(::send(c.client.native_handle(), "x", 1, 0), 1);
            else
                EXPECT_EQ(::write(event, &one, sizeof one), static_cast<int>(sizeof one));
        }
    });
    const time_point began = steady_now();
    drive(10s, [&] {
        seen = came;
        return came == 6;
    });
    EXPECT_LT(steady_now() - began, 3s) << "the host slept on";
    seen = 5;
    other.join();
    drive(3s, [&] { return reader.done(); });
    reader.join();
    ::close(event);
}

class frames : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(frames);

// Each turn takes 100 us at least, so no more than ten are in a frame of one millisecond, and the
// sockets still have their share.
TEST_P(frames, are_short_when_much_is_ready) {
    constexpr int connections = 10, rounds = 5, turns = 100;
    int echoed = 0;
    int spun = 0;
    bool over = false;
    fiber main(
        [&] {
            std::vector<fiber> all;
            for (int i = 0; i < 5; ++i)
                all.emplace_back([&] {
                    for (int turn = 0; turn < turns / 5; ++turn) {
                        const time_point until = steady_now() + 100us;
                        while (steady_now() < until) {
                        }
                        ++spun;
                        weft::this_fiber::yield();
                    }
                });
            for (int i = 0; i < connections; ++i)
                all.emplace_back([&] {
                    connection c = connected();
                    fiber server([&] { echo(c.server); });
                    std::string got(1, 0);
                    for (int round = 0; round < rounds; ++round)
                        if (c.client.write_all(bytes_of("x")) && c.client.read_exact(room(got)))
                            ++echoed;
                    c.client.close();
                    server.join();
                });
            for (fiber& f : all) f.join();
            over = true;
        },
        {.on = loop()});
    int most = 0;
    const time_point patience = steady_now() + 10s;
    while (!over && steady_now() < patience) {
        const int before = spun;
        loop().run_until_idle(weft::after(loop().now(), 1ms));
        most = std::max(most, spun - before);
    }
    EXPECT_TRUE(over);
    EXPECT_EQ(echoed, connections * rounds);
    EXPECT_EQ(spun, turns);
    EXPECT_LE(most, 10);
    EXPECT_GT(most, 0);
}

}  // namespace
