#include "weft/sched/loop.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "test/sched/manual_driver.hpp"
#include "test/support/address_space.hpp"
#include "test/support/counted.hpp"
#include "test/support/loop_thread.hpp"
#include "test/support/nothing_spare.hpp"
#include "test/support/outside.hpp"
#include "test/support/readable.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/driver_futex.hpp"
#include "weft/sched/timer.hpp"
#include "weft/stop/stop_callback.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/counting_semaphore.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/task/detail/task_flow.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/wait/from_callback.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::loop_thread;
using testing::manual_driver;
using ints = std::vector<int>;

// A runnable that calls a function each time it is run.
struct step : detail::frame {
    runnable node;
    std::function<void()> f;

    explicit step(std::function<void()> g) : frame{run, run}, f(std::move(g)) {
        node.handle = handle();
    }
    static void run(frame* s) { static_cast<step*>(s)->f(); }
};

using testing::readable;

// -- order ------------------------------------------------------------------------------------

TEST(loop, runs_yielding_fibers_in_round_robin_order) {
    loop l;
    ints seen;
    std::vector<fiber> all;
    for (int id = 0; id < 3; ++id)
        all.emplace_back(
            [&, id] {
                for (int round = 0; round < 3; ++round) {
                    seen.push_back(id);
                    this_fiber::yield();
                }
            },
            fiber_options{.on = l});
    l.run();
    EXPECT_EQ(seen, (ints{0, 1, 2, 0, 1, 2, 0, 1, 2}));
    for (fiber& f : all) f.join();
}

TEST(loop, keeps_the_order_of_a_long_queue) {
    loop l;
    ints seen;
    ints wanted;
    std::vector<std::unique_ptr<step>> all;
    for (int i = 0; i < 1000; ++i) {
        all.push_back(std::make_unique<step>([&seen, i] { seen.push_back(i); }));
        l.defer(all.back()->handle(), nullptr);
        wanted.push_back(i);
    }
    EXPECT_EQ(l.run_until_idle(), 1000u);
    EXPECT_EQ(l.turn_count(), 1000u);
    EXPECT_EQ(seen, wanted);
}

TEST(loop, runs_a_woken_step_next_at_most_three_times_in_a_row) {
    loop l;
    std::string seen;
    int left = 8;
    std::unique_ptr<step> a, b;
    a = std::make_unique<step>([&] {
        seen += 'a';
        if (--left > 0) l.post(b->node);
    });
    b = std::make_unique<step>([&] {
        seen += 'b';
        if (--left > 0) l.post(a->node);
    });
    step c([&] { seen += 'c'; });
    step d([&] { seen += 'd'; });
    l.post([&] {
        l.defer(c.handle(), nullptr);
        l.defer(d.handle(), nullptr);
        l.post(a->node);
    });
    l.run_until_idle();
    EXPECT_EQ(seen, "abacdbabab") << "three, then the first in line; b stands behind d";
}

TEST(loop, does_not_let_two_steps_that_wake_each_other_starve_a_third) {
    loop l;
    std::string seen;
    int left = 40;
    std::unique_ptr<step> a, b;
    step c([&] { seen += 'c'; });
    a = std::make_unique<step>([&] {
        seen += 'a';
        if (--left > 0) l.post(b->node);
    });
    b = std::make_unique<step>([&] {
        seen += 'b';
        if (left == 20) {
            seen += '!';
            l.defer(c.handle(), nullptr);
        }
        l.post(a->node);
    });
    l.post([&] { l.post(a->node); });
    l.run_until_idle();
    EXPECT_LE(seen.find('c') - seen.find('!'), 4u) << seen;
}

TEST(loop, continues_inline_within_a_budget_if_nothing_else_is_ready) {
    loop l;
    EXPECT_FALSE(l.try_continue_inline());
    std::size_t spared = 0;
    bool others = true;
    l.post([&] {
        l.post([&] {
            others = l.try_continue_inline();
            while (l.try_continue_inline()) ++spared;
        });
        EXPECT_FALSE(l.try_continue_inline()) << "another is ready";
    });
    const auto before = l.turn_count();
    l.run();
    EXPECT_TRUE(others);
    EXPECT_GT(spared, 0u);
    EXPECT_LE(spared, 64u);
    EXPECT_EQ(l.turn_count() - before, spared + 3);
    l.post([&] {
        l.stop();
        EXPECT_FALSE(l.try_continue_inline()) << "it was stopped";
    });
    l.run();
}

// A frame with turns that the code that runs them can distinguish from other turns.
struct numbered_step : detail::frame {
    ints& seen;
    int n;
    numbered_step(ints& s, int i) : frame{run, run}, seen(s), n(i) {}
    static void run(frame* f) {
        auto& self = *static_cast<numbered_step*>(f);
        self.seen.push_back(self.n);
    }
    static bool is_one(std::coroutine_handle<> h) noexcept {
        return static_cast<detail::frame*>(h.address())->resume == run;
    }
};
TEST(loop, lets_a_turn_pop_the_next_matching_entries_in_order) {
    loop l;
    ints seen;
    numbered_step a(seen, 1), b(seen, 2), c(seen, 3);
    l.post([&] {
        l.defer(a.handle(), nullptr);
        l.defer(b.handle(), nullptr);
        l.post([&] { seen.push_back(9); });
        l.defer(c.handle(), nullptr);
        for (std::coroutine_handle<> h; (h = l.try_pop_next(numbered_step::is_one)) != nullptr;)
            h.resume();
        seen.push_back(0);
    });
    l.run();
    EXPECT_EQ(seen, (ints{1, 2, 0, 9, 3}));
}

TEST(loop, lets_no_turn_pop_an_entry_queued_behind_a_woken_step) {
    loop l;
    ints seen;
    numbered_step a(seen, 1);
    step woken([&] { seen.push_back(2); });
    l.post([&] {
        l.defer(a.handle(), nullptr);
        l.post(woken.node);
        EXPECT_EQ(l.try_pop_next(numbered_step::is_one), nullptr);
    });
    l.run();
    EXPECT_EQ(seen, (ints{2, 1}));
}

flow* refused = nullptr;  // by refuses()
bool refuses(ready_turn e) noexcept {
    refused = e.of;
    return false;
}
// The flow whose turn the loop would pass on now.
flow* offered(loop& l) {
    refused = nullptr;
    EXPECT_EQ(l.try_pass_turn(refuses, {}), nullptr);
    return refused;
}
TEST(loop, offers_a_turn_the_one_that_would_come_next) {
    loop l;
    flow* second = nullptr;
    flow* woken = nullptr;
    mutex m;
    fiber first(
        [&] {
            m.lock();
            this_fiber::yield();  // the sleeper waits for it
            EXPECT_EQ(offered(l), second);
            m.unlock();
            EXPECT_EQ(offered(l), woken) << "it was woken last, and comes first";
            l.stop();
            EXPECT_EQ(offered(l), nullptr) << "no more turns";
        },
        {.on = l});
    fiber sleeper(
        [&] {
            woken = current_flow();
            m.lock();
            m.unlock();
        },
        {.on = l});
    fiber other(
        [&] {
            second = current_flow();
            for (int i = 0; i != 5; ++i) this_fiber::yield();
        },
        {.on = l});
    l.run();
    EXPECT_NE(second, nullptr);
    EXPECT_NE(woken, nullptr);
    l.run();
}

// A policy that takes the first.
struct in_order final : schedule_policy {
    std::size_t choose(std::size_t) noexcept override { return 0; }
    void ran(const flow*) noexcept override {}
};
TEST(loop, counts_the_turns_that_were_passed_on) {
    const auto turns = [](bool observed) {
        in_order policy;
        loop l;
        if (observed) l.set_schedule_policy(&policy);
        const auto yields = [] {
            for (int i = 0; i != 100; ++i) this_fiber::yield();
        };
        fiber a(yields, {.on = l});
        fiber b(yields, {.on = l});
        const auto n = l.run_until_idle();
        EXPECT_EQ(l.turn_count(), n);
        return n;
    };
    EXPECT_EQ(turns(false), 202u);
    EXPECT_EQ(turns(true), 202u) << "none is passed on where each is observed";
}

TEST(loop, lets_a_third_fiber_run_beside_two_that_wake_each_other_and_pass_their_turns_on) {
    loop l;
    channel<int> there(0);
    channel<int> back(0);
    int trips = 0;
    int seen_at = -1;
    fiber echo(
        [&] {
            while (const auto n = there.recv()) static_cast<void>(back.send(*n));
        },
        {.on = l});
    fiber caller(
        [&] {
            for (; trips != 30; ++trips) {
                if (trips == 20) fiber([&] { seen_at = trips; }, {.on = l}).detach();
                static_cast<void>(there.send(trips));
                static_cast<void>(back.recv());
            }
            there.close();
        },
        {.on = l});
    l.run();
    EXPECT_GE(seen_at, 20);
    EXPECT_LE(seen_at, 22);
}

struct quiet_watch final : turn_watch {
    void begins(const flow*) noexcept override {}
    void ended() noexcept override {}
};

// Notes the fibers whose turns begin, and expects their ends in between.
class noting_watch final : public turn_watch {
public:
    std::vector<const flow*> begun;
    void begins(const flow* f) noexcept override {
        EXPECT_FALSE(runs_);
        runs_ = true;
        begun.push_back(f);
    }
    void ended() noexcept override {
        EXPECT_TRUE(runs_);
        runs_ = false;
    }

private:
    bool runs_ = false;
};
TEST(loop, passes_no_turn_on_from_the_one_in_which_it_is_observed) {
    loop l;
    noting_watch watch;
    std::vector<const flow*> all;
    fiber a(
        [&] {
            for (int i = 0; i != 4; ++i) {
                all.push_back(current_flow());
                this_fiber::yield();
            }
        },
        {.on = l});
    fiber b(
        [&] {
            this_fiber::yield();
            all.clear();
            l.set_watch(&watch);  // in a turn that was passed on to it
            for (int i = 0; i != 2; ++i) {
                this_fiber::yield();
                all.push_back(current_flow());
            }
            this_fiber::yield();
        },
        {.on = l});
    l.run();
    l.set_watch(nullptr);
    ASSERT_EQ(all.size(), 4u);
    ASSERT_GE(watch.begun.size(), 4u);
    watch.begun.resize(4);
    EXPECT_EQ(watch.begun, all);
}

// What fibers do in an order that chance and the loop decide.
class random_fibers {
public:
    random_fibers(unsigned seed, bool observed) : random_(seed) {
        if (observed) l_.set_watch(&watch_);
        for (int i = 0; i != 3; ++i) spawn(launch::post);
        l_.run();
        l_.set_watch(nullptr);
    }
    const std::string& trace() const { return trace_; }

private:
    void spawn(launch how) {
        if (count_ == 40) return;
        const char name = static_cast<char>('A' + count_++);
        fiber([this, name] { live(name); }, {.on = l_, .launch = how}).detach();
    }
    void live(char name) {
        for (int i = 0; i != 12; ++i) {
            trace_ += name;
            switch (random_() % 8) {
                case 0:
                    spawn(launch::post);
                    break;
                case 1:
                    spawn(launch::dispatch);
                    break;
                case 2:
                    m_.lock();
                    this_fiber::yield();
                    m_.unlock();
                    break;
                case 3:
                    m_.lock();
                    m_.unlock();
                    break;
                case 4:
                    units_.release();
                    this_fiber::yield();
                    units_.acquire();  // another may have taken it
                    break;
                default:
                    this_fiber::yield();
            }
        }
    }

    std::mt19937 random_;
    quiet_watch watch_;
    loop l_;
    mutex m_;
    counting_semaphore<> units_{0};
    int count_ = 0;
    std::string trace_;
};

TEST(loop, gives_the_same_turns_whether_they_are_passed_on_or_not) {
    for (unsigned seed = 1; seed != 200; ++seed)
        ASSERT_EQ(random_fibers(seed, false).trace(), random_fibers(seed, true).trace())
            << "seed " << seed;
}

TEST(loop, looks_for_posts_though_two_fibers_pass_their_turns_on_for_ever) {
    loop l;
    bool posted = false;
    const auto yields = [&] {
        while (!posted) this_fiber::yield();
    };
    fiber a(yields, {.on = l});
    fiber b(yields, {.on = l});
    std::thread other([&] { l.post([&] { posted = true; }); });
    l.run();
    other.join();
    EXPECT_TRUE(posted);
}

TEST(loop, runs_posted_functions_in_order_from_its_own_thread_too) {
    loop l;
    ints seen;
    l.post([&] {
        for (int i = 0; i < 5; ++i) l.post([&seen, i] { seen.push_back(i); });
    });
    l.post([&] { seen.push_back(-1); });
    l.run_until_idle();
    EXPECT_EQ(seen, (ints{-1, 0, 1, 2, 3, 4}));
}

TEST(loop, runs_posts_of_other_threads_in_the_order_of_each) {
    constexpr int thread_count = 4;
    constexpr int each = 2000;
    loop l;
    int next[thread_count] = {};
    int total = 0;
    bool in_order = true;
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < each; ++i)
                l.post([&, t, i] {
                    in_order = in_order && next[t] == i;
                    ++next[t];
                    ++total;
                });
        });
    while (total != thread_count * each) EXPECT_TRUE(l.run_once(never));
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(in_order);
}

TEST(loop, destroys_a_posted_function_once_it_has_run) {
    loop l;
    auto kept = std::make_shared<int>();
    l.post([kept] {});
    EXPECT_EQ(kept.use_count(), 2);
    l.run_until_idle();
    EXPECT_EQ(kept.use_count(), 1);
}

TEST(loop, frees_the_memory_of_a_posted_function_that_has_run) {
    loop l;
    const auto post_some = [&] {
        for (int i = 0; i != 10; ++i) l.post([] {});
        l.run_until_idle();
        return detail::block_cache::stats().used_bytes;
    };
    const std::size_t used = post_some();
    EXPECT_EQ(post_some(), used);
}

TEST(loop, is_running_in_this_thread_only_during_its_turns) {
    loop l;
    loop other;
    EXPECT_FALSE(l.running_in_this_thread());
    bool seen = false;
    l.post([&] {
        seen = l.running_in_this_thread() && !other.running_in_this_thread() &&
               current_flow() == nullptr;
    });
    l.run_until_idle();
    EXPECT_TRUE(seen);
    EXPECT_FALSE(l.running_in_this_thread());
}

// -- waiting ----------------------------------------------------------------------------------

TEST(loop, run_once_waits_until_its_deadline_and_no_shorter) {
    loop l;
    const time_point until = l.now() + 3ms;
    EXPECT_FALSE(l.run_once(until));
    EXPECT_GE(l.now(), until);
    EXPECT_FALSE(l.run_once(l.now() - 1h)) << "a moment that has passed does not wait";
}

TEST(loop, run_once_is_not_ended_by_the_wake_of_a_post_already_run) {
    loop l;
    int ran = 0;
    l.post([&] { ++ran; });
    EXPECT_TRUE(l.run_once(l.now()));
    EXPECT_EQ(ran, 1);
    const time_point until = l.now() + 3ms;
    EXPECT_FALSE(l.run_once(until));
    EXPECT_GE(l.now(), until);
}

TEST(loop, run_once_runs_what_another_thread_posts_while_it_sleeps) {
    loop l;
    for (int i = 0; i < 100; ++i) {
        bool ran = false;
        std::thread other([&] { l.post([&] { ran = true; }); });
        EXPECT_TRUE(l.run_once(never));
        EXPECT_TRUE(ran);
        other.join();
    }
}

TEST(loop, run_until_idle_runs_what_becomes_ready_or_due) {
    manual_driver::record time;
    loop l(std::make_unique<manual_driver>(time));
    ints seen;
    fiber a(
        [&] {
            this_fiber::sleep_for(1ms);
            seen.push_back(1);
            this_fiber::yield();
            seen.push_back(2);
            this_fiber::sleep_for(1h);
        },
        {.on = l});
    l.run_until_idle();
    EXPECT_EQ(seen, ints{});
    EXPECT_EQ(l.next_deadline(), time.now + 1ms);
    time.now += 1ms;
    EXPECT_GT(l.run_until_idle(), 0u);
    EXPECT_EQ(seen, (ints{1, 2}));
    EXPECT_EQ(l.run_until_idle(), 0u);
    a.request_stop();
    l.run_until_idle();
    EXPECT_TRUE(a.join().is_stopped());
}

// A frame of a game: each turn takes a millisecond, by a clock that only the turns advance.
TEST(loop, run_until_idle_ends_with_the_turn_that_reaches_its_deadline) {
    manual_driver::record time;
    loop l(std::make_unique<manual_driver>(time));
    ints turns(3, 0);
    std::vector<fiber> all;
    for (int& mine : turns)
        all.emplace_back(
            [&] {
                while (mine < 100) {
                    ++mine;
                    time.now += 1ms;
                    this_fiber::yield();
                }
            },
            fiber_options{.on = l});
    const auto frame = [&](duration budget) {
        const time_point before = time.now;
        const int ran = turns[0] + turns[1] + turns[2];
        l.run_until_idle(after(l.now(), budget));
        EXPECT_EQ(turns[0] + turns[1] + turns[2] - ran, (time.now - before) / 1ms);
        return time.now - before;
    };
    EXPECT_EQ(frame(5ms), 5ms);
    EXPECT_EQ(turns, (ints{2, 2, 1})) << "in their order";
    EXPECT_EQ(frame(4500us), 5ms) << "no turn is cut short";
    EXPECT_EQ(frame(0ms), 1ms) << "it gets on, however short the frame";
    EXPECT_EQ(l.next_deadline(), l.now()) << "what is left is ready";
    EXPECT_EQ(frame(200ms), 200ms) << "longer than one round";
    EXPECT_EQ(frame(1h), 89ms) << "no longer than there is something to do";
    EXPECT_EQ(turns, (ints{100, 100, 100}));
    EXPECT_EQ(frame(1h), 0ms);
    for (const time_point until : time.waits) EXPECT_LE(until, time.now) << "it never sleeps";
    for (fiber& f : all) f.join();
}

TEST(loop, run_until_idle_fires_due_timers_only_until_its_deadline) {
    manual_driver::record time;
    loop l(std::make_unique<manual_driver>(time));
    int fired = 0;
    std::vector<fiber> all;
    for (int i = 0; i < 10; ++i)
        all.emplace_back(
            [&] {
                this_fiber::sleep_for(1ms);
                time.now += 1ms;
                ++fired;
            },
            fiber_options{.on = l});
    l.run_until_idle(after(l.now(), 3ms));
    EXPECT_EQ(fired, 0);
    time.now += 1ms;
    for (int expected : {3, 6, 9, 10, 10}) {
        l.run_until_idle(after(l.now(), 3ms));
        EXPECT_EQ(fired, expected);
    }
    for (fiber& f : all) f.join();
}

TEST(loop, wakes_sleepers_in_the_order_of_their_deadlines_after_a_day) {
    manual_driver::record time;
    loop l(std::make_unique<manual_driver>(time));
    ints seen;
    std::vector<fiber> all;
    for (const int minutes : {700, 3, 1, 1400, 2, 60})
        all.emplace_back(
            [&seen, minutes] {
                this_fiber::sleep_for(std::chrono::minutes(minutes));
                seen.push_back(minutes);
            },
            fiber_options{.on = l});
    l.run_until_idle();
    time.now += 24h;
    l.run_until_idle();
    EXPECT_EQ(seen, (ints{1, 2, 3, 60, 700, 1400}));
    for (fiber& f : all) f.join();
}

TEST(loop, is_never_early_whatever_the_duration) {
    manual_driver::record time;
    loop l(std::make_unique<manual_driver>(time));
    const duration table[] = {0ns, 1ns, 999us, 1ms, 1ms + 1ns, 41s, 25h, 24h * 3650};
    std::vector<fiber> all;
    int early = 0;
    int done = 0;
    for (const duration d : table)
        all.emplace_back(
            [&, d] {
                const time_point until = l.now() + d;
                this_fiber::sleep_for(d);
                early += l.now() < until;
                early += l.now() - until > 1ms;  // nor late, here where nothing takes time
                ++done;
            },
            fiber_options{.on = l});
    all.emplace_back([] { this_fiber::sleep_for(std::chrono::hours::max()); },
                     fiber_options{.on = l});
    all.emplace_back([] { this_fiber::sleep_until(never); }, fiber_options{.on = l});
    l.on_deadlock([](loop& of) { of.stop(); });
    l.run();
    EXPECT_EQ(early, 0);
    EXPECT_EQ(done, 8);
    for (fiber& f : all) f.request_stop();
    l.run_until_idle();
    for (fiber& f : all) f.join();
}

TEST(loop, sleeps_while_it_is_idle) {
    loop l;
    fiber f([] { this_fiber::sleep_for(200ms); }, {.on = l});
    testing::nothing_spare();
    rusage before{}, after{};
    getrusage(RUSAGE_THREAD, &before);
    l.run();
    getrusage(RUSAGE_THREAD, &after);
    f.join();
    const auto cpu_us = [](const rusage& r) {
        return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec +
               r.ru_stime.tv_usec;
    };
    EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 4);
    EXPECT_LE(cpu_us(after) - cpu_us(before), 50000);
}

// -- a foreign loop ---------------------------------------------------------------------------

TEST(loop, has_a_handle_that_is_readable_after_a_foreign_post) {
    loop l;
    const int fd = l.native_handle();
    EXPECT_FALSE(readable(fd));
    std::thread([&] { l.post([] {}); }).join();
    EXPECT_TRUE(readable(fd));
    while (l.run_once(l.now())) {
    }
    EXPECT_FALSE(readable(fd));
}

TEST(loop, notifies_a_foreign_loop_of_a_post_after_a_busy_iteration) {
    loop l;
    const int fd = l.native_handle();
    step nothing([] {});
    l.post([&] {
        for (int i = 0; i < 70; ++i) l.defer(nothing.handle(), nullptr);
    });
    while (l.next_deadline() <= l.now() || readable(fd)) l.run_once(l.now());
    bool ran = false;
    std::thread([&] { l.post([&] { ran = true; }); }).join();
    EXPECT_TRUE(readable(fd) || l.next_deadline() <= l.now());
    EXPECT_TRUE(l.run_once(l.now()));
    EXPECT_TRUE(ran);
}

// `run` runs what was posted, again and again, and each time the edge alone reports the post.
void watch_the_edge(loop& l, const std::function<void()>& run) {
    const int ep = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event e{};
    e.events = EPOLLIN | EPOLLET;
    ASSERT_EQ(::epoll_ctl(ep, EPOLL_CTL_ADD, l.native_handle(), &e), 0);
    int ran = 0;
    for (int i = 1; i <= 5; ++i) {
        std::thread([&] { l.post([&] { ++ran; }); }).join();
        EXPECT_EQ(::epoll_wait(ep, &e, 1, 0), 1) << i;
        run();
        EXPECT_EQ(ran, i);
        EXPECT_FALSE(readable(l.native_handle()));
    }
    ::close(ep);
}

TEST(loop, notifies_a_foreign_loop_that_is_edge_triggered) {
    loop l;
    watch_the_edge(l, [&] { EXPECT_TRUE(l.run_once(l.now())); });
    watch_the_edge(l, [&] { EXPECT_EQ(l.run_until_idle(), 1u); });
    watch_the_edge(l, [&] { l.run(); });
}

TEST(loop, notifies_a_foreign_loop_of_a_post_after_a_stopped_busy_run) {
    loop l;
    watch_the_edge(l, [&] {
        step nothing([] {});
        step stop([&] { l.stop(); });
        step busy([&] {
            for (int i = 0; i < 70; ++i) l.defer(nothing.handle(), nullptr);
            l.defer(stop.handle(), nullptr);
        });
        l.defer(busy.handle(), nullptr);
        l.run();
    });
}

TEST(loop, can_be_driven_by_a_foreign_epoll_loop) {
    constexpr int total = 500;
    loop l;
    const int ep = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event e{};
    e.events = EPOLLIN;
    ASSERT_EQ(::epoll_ctl(ep, EPOLL_CTL_ADD, l.native_handle(), &e), 0);

    int came = 0;
    bool slept = false;
    fiber sleeper(
        [&] {
            this_fiber::sleep_for(2ms);
            for (int i = 0; i < 200; ++i) this_fiber::yield();
            slept = true;
        },
        {.on = l});
    std::thread other([&] {
        for (int i = 0; i < total; ++i) {
            l.post([&] { ++came; });
            if (i % 50 == 0) std::this_thread::yield();
        }
    });
    while (came != total || !slept) {
        const time_point until = l.next_deadline();
        const time_point now = l.now();
        int ms = -1;
        if (until != never)
            ms = until <= now
                     ? 0
                     : static_cast<int>(
                           std::chrono::ceil<std::chrono::milliseconds>(until - now).count());
        static_cast<void>(!::epoll_wait(ep, &e, 1, ms));
        l.run_once(l.now());
    }
    other.join();
    sleeper.join();
    ::close(ep);
}

// -- the end ----------------------------------------------------------------------------------

TEST(loop, run_returns_when_it_is_empty) {
    loop l;
    l.run();
    int ran = 0;
    l.post([&] { ++ran; });
    l.run();
    fiber f(
        [&] {
            this_fiber::sleep_for(1ms);
            ++ran;
        },
        {.on = l});
    l.run();
    EXPECT_EQ(ran, 2);
    EXPECT_TRUE(f.done());
    f.join();
}

TEST(loop, stops_after_the_turn_that_calls_stop) {
    loop l;
    ints seen;
    l.post([&] {
        l.stop();
        seen.push_back(1);
    });
    l.post([&] { seen.push_back(2); });
    l.run();
    EXPECT_EQ(seen, ints{1});
    l.run();
    EXPECT_EQ(seen, (ints{1, 2}));
}

TEST(loop, can_be_stopped_by_any_thread_and_destroyed_at_once) {
    for (int i = 0; i < 200; ++i) {
        std::thread other;
        {
            loop l;
            fiber([] { this_fiber::sleep_for(1h); }, {.on = l}).detach();
            other = std::thread([&] { l.stop(); });
            l.run();
        }
        other.join();
    }
}

TEST(loop, run_once_is_ended_by_stop) {
    loop l;
    std::thread other([&] { l.stop(); });
    EXPECT_FALSE(l.run_once(never));
    other.join();
}

TEST(loop, run_once_is_ended_by_wake) {
    loop l;
    std::thread other([&] { l.wake(); });
    EXPECT_FALSE(l.run_once(never));
    other.join();
}

TEST(loop, a_wake_ends_the_next_sleep_and_no_other) {
    loop l;
    l.wake();
    l.wake();
    l.post([] {});
    EXPECT_TRUE(l.run_once(never));   // it does not sleep
    EXPECT_FALSE(l.run_once(never));  // it would have
    const time_point until = after(l.now(), 5ms);
    EXPECT_FALSE(l.run_once(until));
    EXPECT_GE(l.now(), until);
}

// Whatever else ended the sleep that it found.
TEST(loop, a_wake_ends_one_call_even_if_it_has_run_something) {
    struct interrupted final : driver {
        std::function<void()> meanwhile;
        int waits = 0;

        bool wait(time_point) noexcept override {
            ++waits;
            if (const auto f = std::exchange(meanwhile, nullptr)) std::thread(f).join();
            return true;
        }
        void wake() noexcept override {}
        time_point now() const noexcept override { return {}; }
        bool keeps_real_time() const noexcept override { return false; }
        int native_handle() noexcept override { return -1; }
    };
    auto d = std::make_unique<interrupted>();
    interrupted& slept = *d;
    loop l(std::move(d));
    int ran = 0;
    slept.meanwhile = [&] {
        l.wake();
        l.post([&] { ++ran; });
    };
    EXPECT_TRUE(l.run_once(never));
    EXPECT_EQ(ran, 1);
    slept.meanwhile = [&] { l.post([&] { ++ran; }); };
    EXPECT_TRUE(l.run_once(never));  // sleeps, until that
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(slept.waits, 2);
}

TEST(loop, run_continues_after_a_wake_and_leaves_none_pending) {
    loop l;
    fiber f([] { this_fiber::sleep_for(5ms); }, {.on = l});
    l.wake();
    l.run();
    EXPECT_TRUE(f.done());
    const time_point until = after(l.now(), 5ms);
    EXPECT_FALSE(l.run_once(until));
    EXPECT_GE(l.now(), until);
}

TEST(loop, run_once_that_was_stopped_leaves_no_stop_pending) {
    loop l;
    l.post([&] { l.stop(); });
    EXPECT_TRUE(l.run_once(l.now()));
    int ran = 0;
    l.post([&] { ++ran; });
    l.run();
    EXPECT_EQ(ran, 1);
}

TEST(loop, is_stopped_by_a_timer_before_the_next_turn) {
    manual_driver::record time;
    loop l(std::make_unique<manual_driver>(time));
    timer t(l, 1ms, [&] { l.stop(); });
    l.run_until_idle();
    time.now += 1ms;
    int ran = 0;
    l.post([&] { ++ran; });
    l.run();
    EXPECT_EQ(ran, 0);
    l.run();
    EXPECT_EQ(ran, 1);
}

TEST(loop, runs_again_after_a_stop_in_each_of_many_loops) {
    for (int i = 0; i < 100; ++i) {
        loop l;
        int turns = 0;
        fiber f(
            [&] {
                for (; turns < 3; ++turns) {
                    l.stop();
                    this_fiber::yield();
                }
            },
            {.on = l});
        for (int runs = 1; runs <= 3; ++runs) {
            l.run();
            EXPECT_EQ(turns, runs - 1) << "one turn a run";
        }
        l.run();
        EXPECT_EQ(turns, 3);
        f.join();
    }
}

using testing::counted;

TEST(loop, destroyed_with_live_work_unwinds_all_of_it) {
    int destroyed = 0;
    {
        loop l;
        const auto waits = [&] {
            counted c{destroyed};
            this_fiber::sleep_for(1h);
        };
        const auto shielded = [&] {
            counted c{destroyed};
            shield s;
            this_fiber::sleep_for(1h);
        };
        const auto yields = [&] {
            counted c{destroyed};
            for (;;) this_fiber::yield();
        };
        for (int i = 0; i < 10; ++i) {
            fiber(waits, {.on = l}).detach();
            fiber(shielded, {.on = l}).detach();
            fiber(yields, {.on = l}).detach();
        }
        l.run_once(l.now());
        EXPECT_EQ(l.flow_count(), 30u);
    }
    EXPECT_EQ(destroyed, 30);
}

TEST(loop, destroyed_unwinds_a_fiber_that_ignores_the_stop_and_yields) {
    int destroyed = 0;
    {
        loop l;
        fiber(
            [&] {
                counted c{destroyed};
                for (;;) {
                    try {
                        for (;;) this_fiber::yield();
                    } catch (const stopped&) {
                        shield s;
                        this_fiber::yield();
                    }
                }
            },
            {.on = l})
            .detach();
        l.run_once(l.now());
    }
    EXPECT_EQ(destroyed, 1);
}

TEST(loop, destroyed_requests_stop_of_fibers_not_yet_started) {
    int destroyed = 0;
    stop_reason why = stop_reason::none;
    {
        loop l;
        fiber(
            [&] {
                counted c{destroyed};
                try {
                    for (;;) this_fiber::yield();
                } catch (const stopped& s) {
                    why = s.reason;
                    throw;
                }
            },
            {.on = l})
            .detach();
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(why, stop_reason::shutdown);
}

// A task that sleeps until it is stopped, and calls f then.
template <class F>
eager_task<void> calls_when_stopped(F f) {
    const stop_callback told(this_task::get_stop_token(), [&](stop_reason) noexcept { f(); });
    try {
        co_await sleep_for(1h);
    } catch (const stopped&) {  // as it should be
    }
}

TEST(loop, requests_stop_of_all_though_a_callback_ends_the_next_flow) {
    std::optional<eager_task<void>> first, second, third;
    int asked = 0;
    {
        loop l;
        l.post([&] {
            first.emplace(calls_when_stopped([&] { second.reset(); }));
            second.emplace(calls_when_stopped([&] { ++asked; }));
            third.emplace(calls_when_stopped([&] { ++asked; }));
        });
        l.run_until_idle();
        ASSERT_EQ(l.flow_count(), 3u);
    }
    EXPECT_EQ(asked, 1);
}

TEST(loop, requests_stop_of_all_though_callbacks_end_or_start_flows) {
    std::optional<eager_task<void>> first, second, third;
    int asked = 0;
    {
        loop l;
        l.post([&] {
            first.emplace(calls_when_stopped([&] { first.reset(); }));
            second.emplace(
                calls_when_stopped([&] { third.emplace(calls_when_stopped([&] { ++asked; })); }));
        });
        l.run_until_idle();
        ASSERT_EQ(l.flow_count(), 2u);
    }
    EXPECT_EQ(asked, 1);
}

TEST(loop, destroyed_ends_the_newest_flow_first) {
    ints ended;
    {
        loop l;
        fiber(
            [&] {
                struct at_end {
                    ints& e;
                    ~at_end() { e.push_back(1); }
                } const a{ended};
                fiber child([&] {
                    struct at_end_of_child {
                        ints& e;
                        ~at_end_of_child() { e.push_back(2); }
                    } const b{ended};
                    shield s;
                    this_fiber::sleep_for(1h);
                });
                this_fiber::sleep_for(1h);
            },
            {.on = l})
            .detach();
        l.run_until_idle();
    }
    EXPECT_EQ(ended, (ints{2, 1}));
}

TEST(loop, destroyed_runs_a_hundred_thousand_unstarted_fibers) {
    constexpr int count = WEFT_TEST_TSAN ? 2000 : WEFT_TEST_ASAN ? 10000 : 100000;
    int began = 0;
    {
        loop l;
        for (int i = 0; i < count; ++i)
            fiber([&] { ++began; }, {.on = l, .stack_bytes = 16384}).detach();
    }
    EXPECT_EQ(began, count);
}

struct posts_itself {
    loop& l;
    std::shared_ptr<int> kept;
    void operator()() const { l.post(*this); }
};

TEST(loop, destroyed_destroys_a_function_that_keeps_posting_itself) {
    auto kept = std::make_shared<int>();
    {
        loop l;
        l.post(posts_itself{l, kept});
        l.run_once(l.now());
        EXPECT_EQ(kept.use_count(), 2);
    }
    EXPECT_EQ(kept.use_count(), 1);
}

// One that has a timer, and posts itself again and again.
struct restless_with_timer : detail::frame, timer_node {
    loop& l;
    runnable node;
    bool fired = false;
    explicit restless_with_timer(loop& on) : frame{run, end}, l(on) {
        node.handle = frame::handle();
        deadline = after(on.now(), 1h);
        fires_at_end = true;
        fire = [](timer_node& t) noexcept { static_cast<restless_with_timer&>(t).fired = true; };
        on.arm(*this);
        on.post(node);
    }
    static void run(frame* f) {
        auto& self = *static_cast<restless_with_timer*>(f);
        self.l.post(self.node);
    }
    static void end(frame* f) {
        auto& self = *static_cast<restless_with_timer*>(f);
        if (self.armed) self.l.disarm(self);
    }
};
TEST(loop, destroyed_fires_no_timer_that_ends_with_ready_work) {
    std::optional<loop> l(std::in_place);
    restless_with_timer r(*l);
    l.reset();
    EXPECT_FALSE(r.armed);
    EXPECT_FALSE(r.fired);
}

// Each starts the next, so that there is always one that has not started.
void begin_next(std::shared_ptr<int> kept) {
    fiber([kept] {
        const shield s;
        begin_next(kept);
    }).detach();
}

TEST(loop, destroyed_ends_fibers_that_keep_starting_another) {
    auto kept = std::make_shared<int>();
    {
        loop l;
        fiber([&] { begin_next(kept); }, {.on = l}).detach();
        l.run_once(l.now());
    }
    EXPECT_EQ(kept.use_count(), 1);
}

// A wait of a test's own, which another thread ends in two halves: claim, and wake.
struct claimed_late {
    static constexpr bool reports_stop = false;
    std::atomic<waiter*> enlisted{nullptr};

    bool ready() const noexcept { return false; }
    bool start(waiter& w) noexcept {
        w.enlist("a test", this, this, [](waiter&) noexcept {});
        enlisted.store(&w, std::memory_order_release);
        return true;
    }
    void take(const waiter*, wait_status) const noexcept {}
};

TEST(loop, destroyed_waits_for_the_wake_of_a_waiter_already_claimed) {
    for (int i = 0; i < 50; ++i) {
        claimed_late op;
        std::atomic<bool> ending{false};
        std::atomic<bool> claimed{false};
        std::thread other;
        {
            loop l;
            fiber(
                [&] {
                    stop_callback note(this_fiber::get_stop_token(), [&] { ending = true; });
                    shield s;
                    await(op);
                },
                {.on = l})
                .detach();
            l.run_until_idle();
            other = std::thread([&] {
                waiter* w = op.enlisted.load(std::memory_order_acquire);
                EXPECT_TRUE(w->claim());
                claimed = true;
                while (!ending) std::this_thread::yield();
                for (int n = 0; n < 20; ++n) std::this_thread::yield();
                w->wake();
            });
            while (!claimed) std::this_thread::yield();
        }
        other.join();
    }
}

// A wake that lasts: what it writes is refused, and tried again.
class slow_to_wake final : public driver {
public:
    explicit slow_to_wake(std::atomic<bool>& wakes) noexcept : wakes_(wakes) {}
    bool wait(time_point until) noexcept override { return sleeps_.wait(until); }
    void wake() noexcept override {
        wakes_ = true;
        std::this_thread::sleep_for(300ms);
        sleeps_.wake();
    }
    time_point now() const noexcept override { return sleeps_.now(); }
    int native_handle() noexcept override { return -1; }

private:
    driver_futex sleeps_;
    std::atomic<bool>& wakes_;
};

TEST(loop, destroyed_does_not_spin_while_a_thread_is_waking_it) {
    const auto cpu = [] {
        ::timespec t{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return duration(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
    };
    std::atomic<bool> wakes{false};
    auto l = std::make_unique<loop>(std::make_unique<slow_to_wake>(wakes));
    std::thread waker([&] { l->wake(); });
    while (!wakes) std::this_thread::yield();
    const duration before = cpu();
    l.reset();
    EXPECT_LT(cpu() - before, 100ms);
    waker.join();
}

// Between turns, it checks whether a flow is still named there.
class looks_for_flows final : public driver {
public:
    explicit looks_for_flows(int& named) noexcept : named_(named) {}
    bool wait(time_point until) noexcept override {
        look();
        return sleeps_.wait(until);
    }
    void poll() noexcept override { look(); }
    void wake() noexcept override { sleeps_.wake(); }
    time_point now() const noexcept override { return sleeps_.now(); }
    int native_handle() noexcept override { return -1; }

private:
    void look() noexcept { named_ += current_flow() != nullptr; }

    driver_futex sleeps_;
    int& named_;
};

TEST(loop, polls_its_driver_outside_any_flow) {
    int named = 0;
    loop l(std::make_unique<looks_for_flows>(named));
    for (int i = 0; i < 10; ++i) {
        // A fiber that stays ready makes the loop poll the driver between turns.
        fiber ready(
            [] {
                for (int k = 0; k < 5; ++k) this_fiber::yield();
            },
            {.on = l});
        fiber([] {}, {.on = l}).detach();
        ready.detach();
        static_cast<void>(l.run_until_idle());
    }
    EXPECT_EQ(named, 0);
}

// What a resume throws comes out of the run, and the thread is then in no loop.
TEST(loop, restores_the_current_executor_when_an_exception_leaves_it) {
    struct throwing : detail::frame {
        throwing() : frame{[](frame*) { throw 7; }, [](frame*) {}} {}
    } f;
    loop l;
    l.defer(f.handle(), nullptr);
    EXPECT_THROW(l.run_until_idle(), int);
    EXPECT_EQ(current_executor(), nullptr);
    EXPECT_EQ(current_flow(), nullptr);
    l.run();
}

// -- deadlock ---------------------------------------------------------------------------------

// A flow that is unwound cannot be suspended; the awaited object may be another flow.
TEST(loop, runs_and_ends_other_flows_while_it_unwinds_one) {
    std::string order;
    struct step_at_end {
        std::function<void()> f;
        ~step_at_end() { f(); }
    };
    {
        loop l;
        const auto running_in_this_thread = [](const flow& f, const void* name) noexcept {
            const char* const own = f.info().name;
            return own != nullptr && std::string_view(own) == static_cast<const char*>(name);
        };
        fiber elder(
            [&] {
                const step_at_end end{[&] { order += "elder "; }};
                const shield s;
                this_fiber::sleep_for(1h);
            },
            {.name = "elder", .on = l});
        fiber late(
            [&] {
                const step_at_end end{[&] {
                    EXPECT_TRUE(l.run_beside(false));
                    EXPECT_EQ(order, "");
                    EXPECT_NE(l.find_living(running_in_this_thread, "elder"), nullptr);
                    EXPECT_TRUE(l.run_beside(true));
                    EXPECT_EQ(order, "elder ");
                    EXPECT_EQ(l.find_living(running_in_this_thread, "elder"), nullptr);
                    EXPECT_NE(l.find_living(running_in_this_thread, "late"), nullptr);
                    EXPECT_FALSE(l.run_beside(true));
                    EXPECT_TRUE(l.run_beside(false));
                    order += "late";
                }};
                const shield s;
                EXPECT_FALSE(l.run_beside(false));  // within a turn
                this_fiber::sleep_for(1h);
            },
            {.name = "late", .on = l});
        EXPECT_TRUE(l.run_once(l.now()));
        elder.detach();
        late.detach();
    }
    EXPECT_EQ(order, "elder late");
}

TEST(loop_death, names_each_waiting_fiber_and_its_object_in_a_deadlock) {
    const auto deadlocked = [] {
        manual_driver::record time;
        loop l(std::make_unique<manual_driver>(time));
        fiber a, b;
        a = fiber([&] { b.join(); }, {.name = "fork", .on = l});
        b = fiber([&] { a.join(); }, {.name = "spoon", .on = l});
        l.run();
        std::_Exit(1);
    };
    EXPECT_DEATH(deadlocked(),
                 "weft: deadlock.*\n"
                 "  fiber [0-9]+ \"fork\" waits for the end of a fiber: fiber [0-9]+ \"spoon\"\n"
                 "  fiber [0-9]+ \"spoon\" waits for the end of a fiber: fiber [0-9]+ \"fork\"");
}

TEST(loop, reports_a_deadlock_of_an_earlier_run_after_a_second) {
    static std::vector<time_point> reports;
    reports.clear();
    manual_driver::record time;
    fiber a, b;
    {
        loop l(std::make_unique<manual_driver>(time));
        l.on_deadlock([](loop& of) { reports.push_back(of.now()); });
        a = fiber([&] { b.join(); }, {.on = l});
        b = fiber([&] { a.join(); }, {.on = l});
        l.run_until_idle();
        l.run();
    }
    EXPECT_EQ(reports, (std::vector{time_point(1s)}));
    a.join(), b.join();
}

TEST(loop, reports_no_deadlock_when_another_thread_wakes_its_fiber) {
    static std::atomic<int> reports;
    reports = 0;
    loop l;
    l.on_deadlock([](loop&) { ++reports; });
    loop_thread elsewhere;
    fiber far([] { this_fiber::sleep_for(20ms); }, {.on = elsewhere});
    fiber near([&] { far.join(); }, {.on = l});
    l.run();
    near.join();
    EXPECT_EQ(reports, 0);
}

// So many that each join the next, and behind them one that waits for the world twice. Returns
// until when the loop slept.
std::vector<time_point> sleeps_beside_one_that_waits_for_outside(std::size_t elder) {
    static int reports;
    reports = 0;
    std::vector<time_point> waits;
    void* promised = nullptr;
    loop l(std::make_unique<testing::jumping_driver>(
        &waits, [&] { EXPECT_TRUE(completion<int>::adopt(promised)(7)); }));
    l.on_deadlock([](loop&) { ++reports; });
    std::vector<fiber> all(elder + 1);
    for (std::size_t i = 0; i <= elder; ++i)
        all[i] = fiber(
            [&, i] {
                if (i != elder) return static_cast<void>(all[i + 1].join());
                for (int n = 0; n < 2; ++n) {
                    const auto r =
                        await_callback<int>([&](auto done) { promised = done.release(); });
                    EXPECT_EQ(r.value(), 7);
                }
            },
            {.on = l});
    l.run();
    EXPECT_EQ(reports, 0);
    return waits;
}

TEST(loop, sleeps_without_a_timer_if_one_of_its_oldest_waits_externally) {
    EXPECT_EQ(sleeps_beside_one_that_waits_for_outside(3), (std::vector{never, never}));
}

TEST(loop, reports_no_deadlock_when_one_flow_waits_externally) {
    EXPECT_EQ(sleeps_beside_one_that_waits_for_outside(4),
              (std::vector{time_point(1s), never, time_point(2s), never}))
        << "it asks after a second, and then sleeps until something happens";
}

TEST(loop, reports_no_deadlock_without_a_handler) {
    manual_driver::record time;
    fiber a, b;
    {
        loop l(std::make_unique<manual_driver>(time));
        l.on_deadlock(nullptr);
        a = fiber([&] { b.join(); }, {.on = l});
        b = fiber([&] { a.join(); }, {.on = l});
        l.run();
        EXPECT_EQ(l.flow_count(), 2u);
    }
    a.join();
    b.join();
}

TEST(loop, prints_the_first_hundred_waiters_and_the_total_count) {
    loop l;
    fiber last;
    std::vector<fiber> all;
    all.emplace_back([&] { last.join(); }, fiber_options{.name = "first", .on = l});
    for (int i = 0; i < 148; ++i)
        all.emplace_back([] { this_fiber::sleep_for(1h); }, fiber_options{.on = l});
    last = fiber([] { this_fiber::sleep_for(1h); }, {.name = "last", .on = l});
    l.run_until_idle();
    std::FILE* const file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    l.print_waiting(::fileno(file));
    std::rewind(file);
    std::vector<std::string> lines;
    for (char text[512]; std::fgets(text, sizeof text, file) != nullptr;) lines.push_back(text);
    std::fclose(file);
    ASSERT_EQ(lines.size(), 101u);
    EXPECT_NE(lines[0].find("\"first\" waits for the end of a fiber: fiber "), std::string::npos);
    EXPECT_NE(lines[0].find("\"last\""), std::string::npos);
    EXPECT_EQ(lines[100], "  and others, 150 in all\n");
    for (fiber& f : all) f.request_stop();
    last.request_stop();
    l.run_until_idle();
}

// -- misuse -----------------------------------------------------------------------------------

TEST(loop, prints_awaited_flows_by_name_and_other_objects_by_address) {
    loop l;
    mutex held;
    const std::lock_guard lock(held);
    fiber a;
    fiber b([&] { held.lock(); }, {.name = "spoon", .on = l});
    a = fiber([&] { b.join(); }, {.name = "fork", .on = l});
    l.run_until_idle();
    ::testing::internal::CaptureStderr();
    l.print_waiting(2);
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("\"spoon\" waits for a mutex at 0x"), text.npos) << text;
    EXPECT_NE(text.find("\"fork\" waits for the end of a fiber: fiber "), text.npos) << text;
    b.request_stop();
    l.run();
    a.join();  // which has joined the other
}

TEST(loop_death, run_in_its_own_turn) {
    const auto runs_itself = [](auto run) {
        loop l;
        l.post([&] { run(l); });
        l.run();
    };
    const char* const message = "weft: a loop is run by what it runs";
    EXPECT_DEATH(runs_itself([](loop& l) { l.run(); }), message);
    EXPECT_DEATH(runs_itself([](loop& l) { l.run_once(l.now()); }), message);
    EXPECT_DEATH(runs_itself([](loop& l) { l.run_until_idle(); }), message);
}

TEST(loop_death, reports_misuse_with_the_source_file_of_the_caller) {
    const auto runs_itself = [](auto run) {
        loop l;
        l.post([&] { run(l); });
        l.run();
    };
    EXPECT_DEATH(runs_itself([](loop& l) { l.run(); }), "loop_test.cpp");
    EXPECT_DEATH(runs_itself([](loop& l) { l.run_once(l.now()); }), "loop_test.cpp");
    EXPECT_DEATH(runs_itself([](loop& l) { l.run_until_idle(); }), "loop_test.cpp");
}

TEST(loop_death, run_twice_at_once) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // there may be threads, and it starts one
    const auto by_another_thread = [] {
        loop l;
        l.post([&] { std::thread([&] { l.run_until_idle(); }).join(); });
        l.run();
    };
    EXPECT_DEATH(by_another_thread(), "weft: a loop is run by two at once");
    const auto by_way_of_another_loop = [] {
        loop l;
        loop other;
        other.post([&] { l.run(); });
        l.post([&] { other.run(); });
        l.run();
    };
    EXPECT_DEATH(by_way_of_another_loop(), "weft: a loop is run by two at once");
}

TEST(loop_death, destroyed_while_another_thread_runs_it) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // as above
    const auto destroyed = [] {
        auto* l = new loop;
        l->post([l] { std::thread([l] { delete l; }).join(); });
        l->run();
    };
    EXPECT_DEATH(destroyed(), "weft: destruction of a loop that another thread runs");
}

TEST(loop_death, run_in_a_forked_process) {
    loop l;  // the death test forks after it is made
    EXPECT_DEATH(l.run(), "weft: a loop goes on in a forked process");
    EXPECT_DEATH(l.run_once(l.now()), "weft: a loop goes on in a forked process");
    const auto of_its_own = [] {
        int ran = 0;
        loop mine;
        mine.post([&] { ++ran; });
        mine.run();
        std::_Exit(ran);
    };
    EXPECT_EXIT(of_its_own(), ::testing::ExitedWithCode(1), "");
}

TEST(loop_death, forked_in_its_own_turn) {
    const auto goes_on_in_the_child = [] {
        loop l;
        fiber f(
            [] {
                const pid_t child = ::fork();
                int how = 0;
                if (child != 0) {
                    ::waitpid(child, &how, 0);
                    std::_Exit(WIFSIGNALED(how) ? 3 : 4);
                }
                this_fiber::sleep_for(1ms);
            },
            {.on = l});
        l.run();
        std::_Exit(5);
    };
    EXPECT_EXIT(goes_on_in_the_child(), ::testing::ExitedWithCode(3),
                "weft: a loop goes on in a forked process");
}

TEST(loop_death, out_of_memory_for_its_ready_queue) {
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "a sanitizer needs its address space";
    if (!testing::address_space_can_be_limited()) GTEST_SKIP() << "memory has no limit here";
    const auto fills_the_queue = [] {
        loop l;
        step nothing([] {});
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_AS, &none);
        for (;;) l.defer(nothing.handle(), nullptr);
    };
    EXPECT_DEATH(fills_the_queue(), "weft: out of memory: no room for what is ready to run");
}

TEST(loop_death, destroyed_in_its_own_turn) {
    const auto destroyed = [] {
        auto* l = new loop;
        l->post([l] { delete l; });
        l->run();
    };
    // The message has no source line, which would be one of weft's.
    EXPECT_DEATH(destroyed(), "weft: destruction of a loop by what it runs\n");
}

}  // namespace
}  // namespace weft
