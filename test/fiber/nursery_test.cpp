#include "weft/fiber/nursery.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <latch>
#include <list>
#include <memory>
#include <optional>
#include <thread>

#include "test/support/loop_thread.hpp"
#include "test/support/slow.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/latch.hpp"
#include "weft/sync/manual_reset_event.hpp"
#include "weft/task/when_all.hpp"
#include "weft/task/with_nursery.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/timeout_scope.hpp"

#if WEFT_TEST_TSAN
// The count of an exception's owners is libstdc++'s, and ThreadSanitizer does not see it.
extern "C" const char* __tsan_default_suppressions() { return "race:exception_ptr::_M_release\n"; }
#endif

namespace {

using namespace std::chrono_literals;
using weft::nursery;
using weft::this_fiber::sleep_for;

// Runs f in a fiber of a loop whose time jumps; returns how long it took there.
template <class F>
weft::duration in_a_fiber(F f) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    weft::fiber root(f, {.on = l});
    l.run();
    EXPECT_FALSE(root.join().is_stopped());
    return l.now() - before;
}

TEST(nursery_of_fibers, returns_the_results_of_its_children) {
    EXPECT_EQ(in_a_fiber([] {
                  nursery n;
                  int place = 3;
                  auto x = n.spawn([] {
                      sleep_for(2ms);
                      return std::make_unique<int>(1);
                  });
                  auto y = n.spawn([&]() -> int& { return place; }, {.name = "y"});
                  EXPECT_EQ(*x.get(), 1);
                  EXPECT_EQ(&y.get(), &place);
                  EXPECT_TRUE(x.done());
              }),
              2ms);
}

TEST(nursery_of_fibers, stops_the_sibling_of_a_throwing_child_and_joins_both) {
    int living = 0;
    const auto body = [&] {
        nursery n;
        auto x = n.spawn([&] {
            ++living;
            const std::shared_ptr<void> at_end(nullptr, [&](void*) { --living; });
            sleep_for(1h);
            return 1;
        });
        auto y = n.spawn([]() -> int {
            sleep_for(1ms);
            throw 7;
        });
        return x.get() + y.get();  // x is stopped because y failed: y's error comes out
    };
    EXPECT_EQ(in_a_fiber([&] {
                  EXPECT_THROW(body(), int);
                  EXPECT_EQ(living, 0);
              }),
              1ms);
}

TEST(nursery_of_fibers, destructor_stops_children_without_handles) {
    EXPECT_EQ(in_a_fiber([] {
                  int stopped = 0;
                  {
                      nursery n;
                      for (int i = 0; i < 3; ++i)
                          n.spawn([&] {
                              try {
                                  sleep_for(1h);
                              } catch (const weft::stopped&) {
                                  ++stopped;
                                  throw;
                              }
                          });
                      sleep_for(1ms);
                  }
                  EXPECT_EQ(stopped, 3);
              }),
              1ms);
}

TEST(nursery_of_fibers, collects_every_error) {
    in_a_fiber([] {
        nursery n;
        for (int i = 0; i < 3; ++i)
            n.spawn([i] {
                const weft::shield s;
                sleep_for(std::chrono::milliseconds(3 - i));
                throw i;
            });
        int first = -1;
        try {
            n.join();
        } catch (int e) {
            first = e;
        }
        EXPECT_EQ(first, 2);
        EXPECT_EQ(n.errors().size(), 3u);
    });
}

TEST(nursery_of_fibers, lets_a_child_spawn_siblings) {
    EXPECT_EQ(in_a_fiber([] {
                  nursery n;
                  n.spawn([&] {
                      sleep_for(1ms);
                      n.spawn([] { sleep_for(5ms); });
                  });
                  n.join();
              }),
              6ms);
}

TEST(nursery_of_fibers, spawns_a_function_callable_only_once) {
    struct once {
        std::unique_ptr<int> p;
        int operator()() && { return *p; }
        void operator()() & = delete;
    };
    in_a_fiber([] {
        nursery n;
        EXPECT_EQ(n.spawn(once{std::make_unique<int>(3)}).get(), 3);
    });
}

TEST(nursery_of_fibers, is_killed_with_a_child_that_has_not_started) {
    int destroyed = 0;
    bool began = false;
    {
        weft::testing::virtual_loop l(1);
        weft::fiber f(
            [&] {
                nursery n;
                const std::shared_ptr<void> at_end(nullptr, [&](void*) {
                    n.spawn([&began, c = std::shared_ptr<void>(
                                         nullptr, [&](void*) { ++destroyed; })] { began = true; });
                });
                const weft::shield s;
                sleep_for(1h);
            },
            {.on = l});
        l.loop().run_until_idle();
        f.detach();
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_FALSE(began);
}

TEST(nursery_of_fibers, is_killed_with_its_fiber) {
    int living = 0;
    {
        weft::testing::virtual_loop l(1);
        weft::fiber f(
            [&] {
                nursery n;
                n.spawn([&] {
                    ++living;
                    const std::shared_ptr<void> at_end(nullptr, [&](void*) { --living; });
                    const weft::shield s;
                    sleep_for(1h);
                });
                const weft::shield s;
                sleep_for(1h);
            },
            {.on = l});
        l.loop().run_until_idle();
        EXPECT_EQ(living, 1);
        f.detach();
    }
    EXPECT_EQ(living, 0);
}

TEST(nursery_of_fibers, of_an_ending_loop_waits_for_children_on_another_loop) {
    std::latch begun(1);
    bool ended = false;
    weft::loop there;
    there.on_deadlock(nullptr);
    std::optional<weft::fiber> keeper(
        std::in_place, [] { sleep_for(1h); }, weft::fiber_options{.on = there});
    std::thread t([&] { there.run(); });
    {
        weft::loop here;
        weft::fiber f(
            [&] {
                nursery n;
                n.spawn(
                    [&] {
                        const std::shared_ptr<void> at_end(nullptr, [&](void*) { ended = true; });
                        begun.count_down();
                        sleep_for(1h);
                    },
                    weft::fiber_options{.on = there});
                begun.wait();  // the destructor waits for the child then
            },
            {.on = here});
        here.run_until_idle();
        f.detach();
    }
    EXPECT_TRUE(ended);
    keeper.reset();
    t.join();
}

TEST(nursery_of_fibers, killed_after_a_child_failed_throws_nothing) {
    int living = 0;
    {
        weft::testing::virtual_loop l(1);
        weft::fiber f(
            [&] {
                nursery n;
                n.spawn([] { throw 4; });
                ++living;
                const std::shared_ptr<void> at_end(nullptr, [&](void*) { --living; });
                const weft::shield s;
                sleep_for(1h);
            },
            {.on = l});
        l.loop().run_until_idle();
        EXPECT_EQ(living, 1);
        f.detach();
    }
    EXPECT_EQ(living, 0);
}

// -- the block is one of the children -----------------------------------------------------------

// What leaves f: the number that was thrown, -1 for a stop, 0 for nothing.
template <class F>
int what_leaves(F f) {
    try {
        f();
    } catch (const weft::stopped&) {
        return -1;
    } catch (int e) {
        return e;
    }
    return 0;
}
weft::fiber_handle<void> fails_in(nursery& n, weft::duration d, int e,
                                  weft::fiber_options options = {}) {
    return n.spawn(
        [=] {
            sleep_for(d);
            throw e;
        },
        options);
}

TEST(nursery_of_fibers, failed_child_stops_the_block_which_throws_its_error) {
    EXPECT_EQ(in_a_fiber([] {
                  EXPECT_EQ(what_leaves([] {
                                nursery n;
                                fails_in(n, 2ms, 7);
                                sleep_for(1h);
                            }),
                            7);
                  sleep_for(1ms);  // the block is done, and so is its stop
              }),
              3ms);
}

TEST(nursery_of_fibers, failed_child_cancels_a_wait_that_returns_a_result) {
    EXPECT_EQ(in_a_fiber([] {
                  weft::channel<int> c;
                  EXPECT_EQ(what_leaves([&] {
                                nursery n;
                                fails_in(n, 2ms, 7);
                                EXPECT_EQ(c.recv().error(), std::errc::operation_canceled);
                            }),
                            7);
              }),
              2ms);
}

TEST(nursery_of_fibers, error_of_a_child_survives_a_later_deadline_or_stop) {
    EXPECT_EQ(in_a_fiber([] {
                  EXPECT_EQ(what_leaves([&] {
                                const weft::timeout_scope limit(3ms);
                                nursery n;
                                fails_in(n, 2ms, 7);
                                {
                                    const weft::shield s;
                                    sleep_for(4ms);
                                }
                                sleep_for(1h);
                            }),
                            7);
              }),
              4ms);
    weft::testing::virtual_loop l(1);
    weft::fiber f(
        [] {
            nursery n;
            fails_in(n, 2ms, 7);
            {
                const weft::shield s;
                sleep_for(4ms);
            }
            sleep_for(1h);
        },
        {.on = l});
    weft::fiber stopper([&] { sleep_for(3ms), f.request_stop(); }, {.on = l});
    l.run();
    stopper.join();
    EXPECT_EQ(what_leaves([&] { f.join(); }), 7);
}

// So many fibers with a nursery each; in every nursery a child fails before any fiber is notified.
double cpu_seconds_of_failing(int count) {
    const auto now = [] {
        timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
    };
    const double before = now();
    int told = 0;
    in_a_fiber([&] {
        weft::latch all_failed(count);
        nursery all;
        const auto block = [&](int i) {
            nursery n;
            n.spawn([=] { throw i; });
            {
                const weft::shield s;
                while (!n.has_failed()) weft::this_fiber::yield();
                all_failed.arrive_and_wait();
            }
            sleep_for(1h);
        };
        for (int i = 1; i <= count; ++i)
            all.spawn([&, i] { told += what_leaves([&] { block(i); }) == i; });
        all.join();
    });
    EXPECT_EQ(told, count);
    return now() - before;
}

// Four times as many take four times as long, and were it each with each, sixteen times.
TEST(nursery_of_fibers, handles_failures_in_linear_time) {
    const int count = weft::testing::slow ? 500 : 2000;
    EXPECT_LT(cpu_seconds_of_failing(4 * count), 9 * cpu_seconds_of_failing(count));
}

TEST(nursery_of_fibers, failure_reaches_a_block_in_a_nested_await) {
    const auto sleeps = []() -> weft::task<int> {
        co_await weft::sleep_for(1h);
        co_return 1;
    };
    const auto in_a_block_that = [](auto waits) {
        EXPECT_EQ(in_a_fiber([&] {
                      EXPECT_EQ(what_leaves([&] {
                                    nursery n;
                                    fails_in(n, 2ms, 7);
                                    waits();
                                }),
                                7);
                  }),
                  2ms);
    };
    in_a_block_that([&] { weft::await(sleeps()); });
    in_a_block_that([&] { weft::await(weft::when_all(sleeps(), sleeps())); });
    in_a_block_that([&] {
        nursery inner;
        inner.spawn([] { sleep_for(1h); });
        inner.join();
        sleep_for(1h);
    });
    in_a_block_that([&] {
        nursery inner;
        auto x = inner.spawn([] { return sleep_for(1h), 1; });
        static_cast<void>(x.get());
    });
    in_a_block_that([&] {
        weft::await(weft::with_nursery([&](nursery& inner) -> weft::task<> {
            inner.spawn(sleeps());
            co_await inner.async_join();
        }));
        sleep_for(1h);
    });
}

TEST(nursery_of_fibers, rethrows_a_swallowed_error_at_each_wait_and_at_its_end) {
    EXPECT_EQ(in_a_fiber([] {
                  int told = 0;
                  EXPECT_EQ(what_leaves([&] {
                                nursery n;
                                fails_in(n, 2ms, 7);
                                for (int i = 0; i < 3; ++i)
                                    told += what_leaves([] { sleep_for(1h); }) == 7;
                            }),
                            7);
                  EXPECT_EQ(told, 3);
              }),
              2ms);
}

TEST(nursery_of_fibers, lets_the_block_wait_after_join_threw_the_error) {
    EXPECT_EQ(in_a_fiber([] {
                  nursery n;
                  fails_in(n, 2ms, 7);
                  EXPECT_EQ(what_leaves([&] { n.join(); }), 7);
                  sleep_for(1ms);
                  weft::this_fiber::yield();
              }),
              3ms);
}

TEST(nursery_of_fibers, failure_ends_inner_blocks_but_not_outer_ones) {
    EXPECT_EQ(in_a_fiber([] {
                  nursery outer;
                  EXPECT_EQ(what_leaves([&] {
                                nursery inner;
                                fails_in(inner, 1ms, 1);
                                sleep_for(1h);
                            }),
                            1);
                  sleep_for(1ms);
                  fails_in(outer, 1ms, 2);
                  EXPECT_EQ(what_leaves([&] {
                                nursery inner;
                                inner.spawn([] { sleep_for(1h); });
                                sleep_for(1h);
                            }),
                            2);
                  EXPECT_EQ(what_leaves([&] { outer.join(); }), 2);
              }),
              3ms);
}

TEST(nursery_of_fibers, failed_child_on_another_loop_stops_the_block) {
    weft::testing::loop_thread there;
    weft::loop here;
    weft::fiber f(
        [&] {
            for (int i = 1; i <= 100; ++i)
                EXPECT_EQ(what_leaves([&] {
                              nursery n;
                              n.spawn([i] { throw i; }, {.on = there});
                              sleep_for(1h);
                          }),
                          i);
        },
        {.on = here});
    here.run();
    f.join();
}

TEST(nursery_of_fibers, failed_child_stops_a_block_that_migrates_in_a_pool) {
    weft::pool p(2);
    std::list<weft::fiber> all;
    for (int i = 0; i < 4; ++i)
        all.emplace_back(
            [] {
                for (int k = 1; k <= 100; ++k)
                    EXPECT_EQ(what_leaves([&] {
                                  nursery n;
                                  n.spawn([k] { throw k; },
                                          weft::fiber_options{.migratable = true});
                                  for (;;) weft::this_fiber::yield();
                              }),
                              k);
            },
            weft::fiber_options{.on = p, .migratable = true});
    for (weft::fiber& f : all) f.join();
}

TEST(nursery_of_fibers, failed_child_stops_a_block_of_a_plain_thread) {
    weft::testing::loop_thread there;
    for (int i = 1; i <= 100; ++i) {
        EXPECT_EQ(what_leaves([&] {
                      nursery n;
                      n.spawn([i] { throw i; }, {.on = there});
                      sleep_for(1h);
                  }),
                  i);
        EXPECT_EQ(what_leaves([&] {
                      nursery n;
                      n.spawn([i] { throw i; }, {.on = there});
                  }),
                  i);
    }
    sleep_for(1us);
}

TEST(nursery_of_fibers, join_after_a_failure_waits_for_all_and_throws_it_once) {
    in_a_fiber([] {
        bool slow_ended = false;
        nursery n;
        n.spawn([] {
            sleep_for(5ms);
            throw 7;
        });
        n.spawn([&] {
            const weft::shield on_purpose;
            sleep_for(100ms);
            slow_ended = true;
        });
        EXPECT_THROW(sleep_for(1s), int) << "a wait of the block meets it";
        EXPECT_THROW(n.join(), int);
        EXPECT_TRUE(slow_ended);
        sleep_for(1ms);
    });
}

// The end of the inner one takes its own failure away from the block, and not the outer one's.
TEST(nursery_of_fibers, outer_failure_survives_the_end_of_a_failed_inner_nursery) {
    EXPECT_LT(in_a_fiber([] {
                  weft::manual_reset_event never_set;
                  try {
                      nursery outer;
                      outer.spawn([] { throw 1; });
                      try {
                          nursery inner;
                          inner.spawn([] { throw 2; });
                          {
                              const weft::shield both_fail_meanwhile;
                              sleep_for(30ms);
                          }
                          never_set.wait();
                      } catch (int) {
                      }
                      weft::fiber rescue([&] {
                          sleep_for(1h);
                          never_set.set();
                      });
                      never_set.wait();
                      ADD_FAILURE() << "a wait of the outer's block did not end";
                  } catch (int n) {
                      EXPECT_EQ(n, 1);
                  }
              }),
              1min);
}

TEST(fiber_handle, stops_a_live_child_without_its_siblings) {
    EXPECT_EQ(in_a_fiber([] {
                  nursery n;
                  auto stopped = n.spawn([] { sleep_for(1h); });
                  auto left_alone = n.spawn([] { sleep_for(1ms); });
                  weft::this_fiber::yield();
                  EXPECT_FALSE(stopped.done());
                  EXPECT_TRUE(stopped.request_stop());
                  n.join();
                  EXPECT_TRUE(stopped.done());
                  EXPECT_TRUE(left_alone.done());
              }),
              1ms);
    EXPECT_TRUE(weft::fiber_handle<int>().done());
}

TEST(fiber_handle, of_a_done_child_refuses_a_stop_without_its_loop) {
    weft::fiber_handle<int> x;
    {
        weft::testing::virtual_loop l(1);
        weft::fiber root(
            [&] {
                nursery n;
                x = n.spawn([] { return 1; });
                n.join();
            },
            {.on = l});
        l.run();
        root.join();
    }
    EXPECT_TRUE(x.done());
    EXPECT_FALSE(x.request_stop());
}

TEST(fiber_handle_death, second_get_is_refused) {
    const auto twice = [] {
        in_a_fiber([] {
            nursery n;
            auto x = n.spawn([] { return std::make_unique<int>(1); });
            EXPECT_EQ(*x.get(), 1);
            static_cast<void>(x.get());
        });
    };
    EXPECT_DEATH(twice(),
                 "weft: the result of a fiber_handle is asked for twice: fiber [0-9]+ "
                 "\\(.*nursery_test.cpp");
}

}  // namespace
