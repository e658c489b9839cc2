// agents: the agents that call the client libraries of these tests, and what is expected of each.
//
// Design: a body is plain blocking code, and the same for fibers of one thread, which wait by
// weft's hooks, and for plain threads, which the hooks let pass.
//
//   TEST_P(hiredis, is_answered) {
//       all(100, [](int i) { ... });
//   }
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "test/clients/program.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/run/run.hpp"

namespace weft::testing {

using namespace std::chrono_literals;
using seconds = std::chrono::duration<double>;

enum class kind { fibers, threads };

// A sanitizer's code is slower by so much, and so is what is let take its time.
inline constexpr double slowness = WEFT_TEST_ASAN || WEFT_TEST_TSAN ? 5 : 1;

class stopwatch {
public:
    seconds elapsed() const { return steady_now() - begun_; }

private:
    time_point begun_ = steady_now();
};

// The expectation about `what`, and the measured value.
inline void expect_within(seconds bar, const std::string& what, seconds took) {
    std::printf("[   TOOK   ] %s: %.1f ms, may take %.0f ms\n", what.c_str(), took.count() * 1e3,
                bar.count() * 1e3);
    EXPECT_LE(took.count(), bar.count() * slowness) << what;
}

// Runs body(0) to body(count - 1) at the same time, and returns when all have ended.
template <class Body>
void all_at_once(kind k, int count, Body body) {
    if (k == kind::threads) {
        std::vector<std::thread> threads;
        for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
        for (std::thread& t : threads) t.join();
        return;
    }
    run([&] {
        nursery n;
        for (int i = 0; i < count; ++i) n.spawn([&body, i] { body(i); });
        n.join();
    });
}

// Runs first in every test of a client: the program survives a peer's end, and may have as many
// connections as there can be.
class client_test : public ::testing::TestWithParam<kind> {
protected:
    client_test() {
        ::signal(SIGPIPE, SIG_IGN);
        ::rlimit most{};
        ::getrlimit(RLIMIT_NOFILE, &most);
        most.rlim_cur = most.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &most);
    }

    static kind agent_kind() { return GetParam(); }
    static std::string named(const std::string& what) {
        return std::string(agent_kind() == kind::fibers ? "fibers, " : "threads, ") + what;
    }
    template <class Body>
    static void all(int count, Body body) {
        all_at_once(agent_kind(), count, std::move(body));
    }
    // Fibers finish in time; how long threads take is printed for comparison. One of three attempts
    // is enough, because the server has to do its part in that time too, on a machine that may run
    // other work.
    template <class Body>
    static void all_within(seconds bar, const std::string& what, int count, Body body) {
        const bool counts = agent_kind() == kind::fibers;
        seconds best = 1h;
        for (int trial = 0; trial < (counts ? 3 : 1) && best > bar * slowness; ++trial) {
            const stopwatch w;
            all(count, body);
            best = std::min(best, w.elapsed());
        }
        expect_within(counts ? bar : seconds(1h), named(what), best);
    }
};

inline std::string name_of_kind(const ::testing::TestParamInfo<kind>& info) {
    return info.param == kind::fibers ? "fibers" : "threads";
}
// What is a law for both, and what only a fiber can be made to do.
#define INSTANTIATE_FOR_ALL(suite)                                                             \
    INSTANTIATE_TEST_SUITE_P(                                                                  \
        , suite, ::testing::Values(weft::testing::kind::fibers, weft::testing::kind::threads), \
        weft::testing::name_of_kind)
#define INSTANTIATE_FOR_FIBERS(suite)                                                 \
    INSTANTIATE_TEST_SUITE_P(, suite, ::testing::Values(weft::testing::kind::fibers), \
                             weft::testing::name_of_kind)

inline std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// None is lost; a thread of the library's own may have some to close yet.
inline void expect_descriptors(std::ptrdiff_t count, const std::string& what) {
    for (const stopwatch w; open_descriptors() != count && w.elapsed() < 1s;)
        std::this_thread::sleep_for(1ms);
    EXPECT_EQ(open_descriptors(), count) << what;
}

// A fiber in the middle of `call` is stopped: at once, at odd times, and when it has waited in it
// for a while. The call ends with an error of its library, what it has made can be freed, and all
// that takes 10 ms. `call(inside)` sets `inside` before what is to be waited in, and frees what it
// has made. The best of three counts, as this thread is not alone on its processor.
template <class Call>
void expect_stopped_at_once(const std::string& what, Call call) {
    const auto descriptors = open_descriptors();
    seconds worst{};
    for (const duration moment : {duration(0ms), duration(1ms), duration(3ms), duration::max()}) {
        seconds best = 1h;
        for (int trial = 0; trial < 3; ++trial)
            run([&] {
                bool inside = false;
                fiber f([&] {
                    call(inside);
                    this_fiber::throw_if_stopped();
                });
                if (moment == duration::max()) {
                    while (!inside && !f.done()) this_fiber::sleep_for(1ms);
                    this_fiber::sleep_for(20ms);
                } else {
                    this_fiber::sleep_for(moment);
                }
                EXPECT_FALSE(f.done()) << what;
                const stopwatch w;
                f.request_stop();
                EXPECT_TRUE(f.join().is_stopped()) << what;
                best = std::min(best, w.elapsed());
            });
        worst = std::max(worst, best);
    }
    expect_within(10ms, "stop inside " + what, worst);
    expect_descriptors(descriptors, what);
}

// A fiber that waits in `call` is killed: it unwinds where it waits, through the library's own
// frames, and `call` does not return. The destructors of `call` free what it holds, and through
// that what the library holds for it. `call(inside)` sets `inside` before the wait in question.
template <class Call>
void expect_killed_at_once(const std::string& what, Call call) {
    const auto descriptors = open_descriptors();
    seconds best = 1h;
    for (int trial = 0; trial < 3; ++trial)
        run([&] {
            task_manager<> manager;
            bool inside = false;
            bool came_back = false;
            const auto id = manager.spawn([&] {
                call(inside);
                came_back = true;
            });
            ASSERT_TRUE(id) << what;
            while (!inside) this_fiber::sleep_for(1ms);
            this_fiber::sleep_for(20ms);
            const stopwatch w;
            EXPECT_FALSE(manager.kill(*id)) << what;
            EXPECT_TRUE(manager.wait_until_idle()) << what;
            best = std::min(best, w.elapsed());
            EXPECT_FALSE(came_back) << what;
            EXPECT_EQ(manager.stats().killed_count, 1u) << what;
        });
    expect_within(10ms, "kill inside " + what, best);
    expect_descriptors(descriptors, what);
}

// A hundred agents are in the middle of `call` when the server is killed (kill -9); the library
// reports that to each. `call(i, inside)` counts `inside` up before it waits, and checks the
// report.
template <class Call>
void expect_all_told(kind k, const std::string& what, program& server, Call call) {
    constexpr int count = 100;
    std::atomic<int> inside = 0;
    std::atomic<time_point> killed = never;
    std::atomic<time_point> told = never;
    all_at_once(k, count + 1, [&](int i) {
        if (i < count) {
            call(i, inside);
            told = steady_now();
            return;
        }
        while (inside != count) std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(50ms);
        killed = steady_now();
        server.kill();
    });
    expect_within(1s, what + ": all told of a killed server", told.load() - killed.load());
}

// unique_ptr's deleter of what a C library frees by F.
template <auto F>
struct freed_by {
    template <class T>
    void operator()(T* p) const noexcept {
        F(p);
    }
};

}  // namespace weft::testing
