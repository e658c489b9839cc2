// way: the same body run by a fiber and by a task over each driver, and by a plain thread, so that
// a law of io is written once and holds for all seven.
//
// Design: the agent has a thread to itself, and the test, on its own thread, is the environment:
// the peer, or another thread that closes. While the agent waits, its thread sleeps, which can be
// seen from outside: no test has to guess how long that takes.
//
//   class reading : public weft::testing::on_each_way {};
//   TEST_P(reading, gets_what_is_written) {
//       crew reader(way(), [&](auto wait) -> weft::task<> { n = co_await wait(s.async_read(b)); });
//       reader.asleep();                       // it waits
//       ::write(other_end, "x", 1);
//       reader.join();
//   }
//   INSTANTIATE_ON_WAYS(reading);
//
// A body awaits through `wait`: a fiber and a thread block there, in the blocking spelling, and the
// coroutine never suspends; a task suspends.
#pragma once

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "test/io/drivers.hpp"
#include "test/support/agents.hpp"
#include "weft/task/detail/task_run.hpp"
#include "weft/task/task.hpp"
#include "weft/task/with_timeout.hpp"

namespace weft::testing {

struct way {
    io_kind driver;
    kind agent;  // fiber, task or thread; a thread has the driver of all plain threads
};

inline std::string name_of(const way& w) {
    if (w.agent == kind::thread) return "thread";
    return std::string(name_of(w.driver)) + (w.agent == kind::fiber ? "_fiber" : "_task");
}
inline std::string name_of_way(const ::testing::TestParamInfo<way>& i) { return name_of(i.param); }

inline constexpr way all_ways[] = {
    {io_kind::epoll, kind::fiber},   {io_kind::epoll, kind::task}, {io_kind::io_uring, kind::fiber},
    {io_kind::io_uring, kind::task}, {io_kind::poll, kind::fiber}, {io_kind::poll, kind::task},
    {io_kind::epoll, kind::thread},
};

// The content of the thread's file in /proc/self/task; empty if the thread has ended.
inline std::string told_of_thread(::pid_t thread, const char* file) {
    const std::string path = "/proc/self/task/" + std::to_string(thread) + "/" + file;
    std::FILE* const f = std::fopen(path.c_str(), "re");
    if (f == nullptr) return {};
    char text[512];
    const std::size_t n = std::fread(text, 1, sizeof text, f);
    std::fclose(f);
    return {text, n};
}
inline bool thread_sleeps_now(::pid_t thread) {
    const std::string text = told_of_thread(thread, "stat");
    const std::size_t name_end = text.rfind(')');
    return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
}
// Whether the thread sleeps in the system, for whatever reason, and stays asleep: a thread that
// sleeps for a lock, or for bytes that are on their way, soon runs again, which its turns show.
inline bool thread_sleeps(::pid_t thread) {
    if (!thread_sleeps_now(thread)) return false;
    const std::string turns = told_of_thread(thread, "schedstat");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    return thread_sleeps_now(thread) && turns == told_of_thread(thread, "schedstat");
}

// Agents of one way: of one loop, or each with its own thread. Starts at once.
class crew {
public:
    // No wait of a body lasts longer; a law that does not hold is found by that.
    static constexpr auto patience = std::chrono::seconds(5);

    template <class Body>
    crew(const way& w, Body body) : crew(w, 1, std::move(body)) {}
    // body(wait), `count` times.
    template <class Body>
    crew(const way& w, int count, Body body) : way_(w), living_(count) {
        if (w.agent == kind::thread) {
            for (int i = 0; i < count; ++i) {
                running& r = threads_.emplace_back();
                r.thread = std::thread([this, &r, body] {
                    r.number = static_cast<::pid_t>(::syscall(SYS_gettid));
                    block(body);
                    r.over = true;
                });
            }
            return;
        }
        running& r = threads_.emplace_back();
        r.thread = std::thread([this, &r, body, count] {
            weft::loop l(make_io_driver(way_.driver));
            loop_ = &l;
            std::list<fiber> fibers;
            std::list<detail::task_run<void>> tasks;
            for (int i = 0; i < count; ++i)
                if (way_.agent == kind::fiber)
                    fibers.emplace_back([this, &body] { block(body); }, fiber_options{.on = l});
                else
                    tasks.emplace_back(bounded(body), l)->post_first_turn();
            r.number = static_cast<::pid_t>(::syscall(SYS_gettid));
            while (living_ != 0) l.run_once(after(l.now(), std::chrono::seconds(1)));
            loop_ = nullptr;
            r.over = true;
        });
    }
    crew(const crew&) = delete;
    ~crew() { join(); }

    // Until each agent waits, or has ended.
    void asleep() {
        for (running& r : threads_)
            while (!r.over && (r.number == 0 || !thread_sleeps(r.number)))
                std::this_thread::yield();
    }
    bool has_ended() const { return living_ == 0; }
    // Runs f in another turn of the loop while there is one; in the caller where each agent has its
    // own thread.
    template <class F>
    void do_beside(F f) {
        weft::loop* const l = way_.agent == kind::thread ? nullptr : loop_.load();
        if (l == nullptr)
            f();
        else
            l->post(std::move(f));
    }
    void join() {
        for (running& r : threads_)
            if (r.thread.joinable()) r.thread.join();
    }

private:
    struct running {
        std::thread thread;
        std::atomic<::pid_t> number{0};
        std::atomic<bool> over{false};
    };

    template <class Body>
    void block(Body& body) {
        try {
            const timeout_scope limit(patience);
            task<> t = body(blocks());
            t.start();
            ASSERT_TRUE(t.done());
            t.get();
        } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
        }
        --living_;
    }
    template <class Body>
    task<> bounded(Body& body) {
        try {
            EXPECT_TRUE(co_await with_timeout(body(suspends()), patience)) << "it waits for ever";
        } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
        }
        --living_;
    }

    const way way_;
    std::atomic<int> living_;
    std::atomic<weft::loop*> loop_{nullptr};
    std::list<running> threads_;
};

inline bool way_is_here(const way& w, const char** why) {
    return w.agent == kind::thread || w.driver != io_kind::io_uring ||
           make_driver_uring(why) != nullptr;
}

#define WEFT_SKIP_IF_NOT_HERE(w)   \
    const char* why_not = nullptr; \
    if (!weft::testing::way_is_here(w, &why_not)) GTEST_SKIP() << "io_uring: " << why_not

class on_each_way : public ::testing::TestWithParam<way> {
protected:
    void SetUp() override {
        WEFT_SKIP_IF_NOT_HERE(GetParam());
        weft::detail::shared_io_driver();  // stays
    }
    const weft::testing::way& way() const { return GetParam(); }
};

}  // namespace weft::testing

#define INSTANTIATE_ON_WAYS(suite)                                                    \
    INSTANTIATE_TEST_SUITE_P(by, suite, ::testing::ValuesIn(weft::testing::all_ways), \
                             weft::testing::name_of_way)
