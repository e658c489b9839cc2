#include "weft/task/event_source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "test/support/stops_in_copy.hpp"
#include "test/task/on_loop.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/task/sync_wait.hpp"

namespace {

using namespace on_loop;
using weft::event_source;

TEST(event_source, gives_each_waiter_a_copy) {
    weft::testing::virtual_loop l(1);
    event_source<std::string> e;
    const auto reads = [](event_source<std::string>& s) -> task<std::string> {
        co_return co_await s.next();
    };
    weft::detail::task_run<std::string> a(reads(e), l.loop());
    a->post_first_turn();
    std::string in_fiber;
    weft::fiber f([&] { in_fiber = weft::await(e.next()); }, {.on = l});
    l.loop().run_until_idle();
    EXPECT_EQ(e.set("text"), 2u);
    l.run();
    f.join();
    EXPECT_EQ(a.take(), "text");
    EXPECT_EQ(in_fiber, "text");
}

TEST(event_source, keeps_only_the_latest_value) {
    event_source<int> e;
    EXPECT_EQ(e.set(1), 0u);
    EXPECT_EQ(e.set(2), 0u);
    const auto body = [&]() -> task<int> { co_return co_await e.latest(); };
    EXPECT_EQ(run(body()), 2);
    weft::testing::virtual_loop l(1);
    const auto waits = [](event_source<int>& s) -> task<int> {
        co_return co_await s.next() * 10 + co_await s.latest();
    };
    e.set(9);
    weft::detail::task_run<int> r(waits(e), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    EXPECT_EQ(e.set(3), 1u);
    l.run();
    EXPECT_EQ(r.take(), 39);
}

TEST(event_source, can_be_awaited_repeatedly_and_through_an_lvalue) {
    weft::testing::virtual_loop l(1);
    event_source<> e;
    int seen = 0;
    const auto body = [&]() -> task<> {
        for (; seen < 3; ++seen) {
            auto next = e.next();
            co_await next;
        }
    };
    weft::detail::task_run<void> r(body(), l.loop());
    r->post_first_turn();
    for (int i = 0; i < 3; ++i) {
        l.loop().run_until_idle();
        EXPECT_EQ(e.set(), 1u);
    }
    l.run();
    EXPECT_EQ(seen, 3);
    EXPECT_EQ(e.set(), 0u);
}

TEST(event_source, forgets_a_stopped_waiter) {
    weft::testing::virtual_loop l(1);
    event_source<> e;
    const auto body = [](event_source<>& s) -> task<> { co_await s.next(); };
    weft::detail::task_run<void> r(body(e), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    r->request_stop(weft::stop_reason::user);
    l.loop().run_until_idle();
    EXPECT_EQ(e.set(), 0u);
    l.run();
    EXPECT_THROW(r.take(), weft::stopped);
}

TEST(event_source, is_set_by_any_thread) {
    event_source<int> e;
    std::atomic<bool> over{false};
    std::thread setter([&] {
        for (int n = 1; !over; ++n) {
            e.set(n);
            std::this_thread::yield();
        }
    });
    const auto body = [](event_source<int>& s) -> task<> {
        int last = 0;
        for (int i = 0; i < 300; ++i) {
            const int n = co_await s.next();
            EXPECT_GT(n, last);
            last = n;
        }
    };
    weft::sync_wait(body(e));
    over = true;
    setter.join();
}

// Throws in the copy that is due, and then no more.
struct fragile_news {
    static inline int copies_left = 0;
    int n;
    explicit fragile_news(int i) noexcept : n(i) {}
    fragile_news(const fragile_news& other) : n(other.n) {
        if (copies_left-- == 0) throw 'c';
    }
    fragile_news(fragile_news&&) noexcept = default;
    fragile_news& operator=(const fragile_news&) = default;
};

TEST(event_source, a_throwing_copy_fails_its_own_waiter_and_no_other) {
    weft::testing::virtual_loop l(1);
    event_source<fragile_news> e;
    int got = 0, failed = 0;
    const auto reads = [&]() -> task<> {
        try {
            got += (co_await e.next()).n;
        } catch (char) {
            ++failed;
        }
    };
    std::vector<weft::detail::task_run<void>> all;
    for (int i = 0; i < 4; ++i) {
        all.emplace_back(reads(), l.loop());
        all.back()->post_first_turn();
    }
    l.loop().run_until_idle();
    fragile_news::copies_left = 1;
    EXPECT_EQ(e.set(10), 4u);
    l.run();
    EXPECT_EQ(got, 30);
    EXPECT_EQ(failed, 1);
}

// A T that checks the source when it is destroyed, and when it is moved.
struct curious_news {
    event_source<curious_news>* of;
    int* looks;
    curious_news(event_source<curious_news>* e, int* n) noexcept : of(e), looks(n) {}
    curious_news(const curious_news&) noexcept = default;
    curious_news(curious_news&& other) noexcept : of(other.of), looks(other.looks) { look(); }
    curious_news& operator=(const curious_news&) = default;
    ~curious_news() { look(); }

    // Would wait for ever for a lock that is held.
    void look() const noexcept {
        if (*looks != 0) return;
        ++*looks;
        of->set(of, looks);
    }
};

TEST(event_source, moves_and_destroys_its_value_without_holding_its_lock) {
    int looks = 1;
    event_source<curious_news> e;  // destroyed first: its value checks once more
    EXPECT_EQ(e.set(&e, &looks), 0u);
    looks = 0;
    EXPECT_EQ(e.set(&e, &looks), 0u) << "in place of the one before";
    EXPECT_EQ(looks, 1);
}

TEST(event_source_death, refuses_a_kill_while_a_copy_is_made) {
    weft::loop l;
    event_source<weft::testing::stops_in_copy> e;
    int got = 0;
    const auto reads = [&]() -> task<> {
        const auto value = co_await e.next();
        got += value.is_copy ? 1 : 0;
    };
    const weft::detail::task_run<void> reader(reads(), l);
    reader->post_first_turn();
    l.run_until_idle();
    weft::testing::expect_no_kill_in_copy([&] { e.set(); });
    l.run();
    EXPECT_EQ(got, 1);
}

}  // namespace
