#include "weft/future/promise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/allocations.hpp"
#include "test/support/slow.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/future/shared_future.hpp"
#include "weft/future/when.hpp"

namespace {

using namespace future_tests;

TEST(promise, accepts_one_outcome_and_refuses_a_second) {
    weft::loop l;
    promise<int> p(l);
    auto f = p.get_future();
    EXPECT_TRUE(p.set_value(1));
    EXPECT_FALSE(p.set_value(2));
    EXPECT_FALSE(p.set_error(std::make_error_code(std::errc::io_error)));
    EXPECT_FALSE(p.set_exception(std::make_exception_ptr(3)));
    EXPECT_FALSE(p.set_stopped());
    EXPECT_FALSE(f.request_stop());
    EXPECT_EQ(f.get(), 1);
}

TEST(promise, reports_a_stop_only_if_stopped) {
    weft::loop l;
    promise<int> p(l), q(l), empty = std::move(q);
    q = std::move(empty);
    EXPECT_FALSE(empty.stop_requested());
    EXPECT_TRUE(p.set_value(1));
    EXPECT_FALSE(p.stop_requested());
    EXPECT_TRUE(q.set_stopped());
    EXPECT_TRUE(q.stop_requested());
}

// Each kind of block; the last to release it is the promise or the loop.
TEST(promise, and_its_continuations_release_their_memory) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    {
        weft::loop l;  // the thread caches the borrowed fiber
        make_ready_future(l).then([] {}).detach();
        l.run();
    }
    const auto used = weft::detail::block_cache::stats().used_bytes;
    for (int last = 0; last < 2; ++last) {
        auto l = std::make_unique<weft::loop>();
        weft::poll_event e;
        std::vector<promise<int>> given;
        std::vector<future<>> ends;
        const auto next = [&] { return given.emplace_back(*l).get_future(); };
        const auto drop = [](const auto&) {};
        ends.push_back(next().then(plain, [](int n) { return n; }).then(drop));
        ends.push_back(next().then([](future<int> f) { return f; }).then(drop));
        ends.push_back(next().share().then(drop));
        ends.push_back(next().with_timeout(1h).then(drop));
        ends.push_back(next().poll(plain, [] { return true; }).then(drop));
        ends.push_back(next().poll_on(e, [] { return true; }).then(drop));
        ends.push_back(weft::when_all(next(), next()).then(drop));
        ends.push_back(weft::when_any(next(), next()).then(drop));
        EXPECT_GT(weft::detail::block_cache::stats().used_bytes, used);
        for (auto& p : given) p.set_value(1);
        if (last == 0) {
            l->run();
            given.clear();
        } else {
            given.clear();
            l->run();
        }
        for (auto& f : ends) EXPECT_TRUE(f.is_ready());
    }
    EXPECT_EQ(weft::detail::block_cache::stats().used_bytes, used);
}

TEST(promise, sees_the_stop_of_its_future_and_refuses_an_outcome) {
    weft::loop l;
    promise<int> p(l);
    auto f = p.get_future();
    EXPECT_FALSE(p.stop_requested());
    EXPECT_TRUE(f.request_stop(stop_reason::shutdown));
    EXPECT_FALSE(f.request_stop());
    EXPECT_TRUE(p.stop_requested());
    EXPECT_FALSE(p.set_value(1));
    try {
        f.get();
        FAIL();
    } catch (const weft::stopped& s) {
        EXPECT_EQ(s.reason, stop_reason::shutdown);
    }
}

TEST(promise, has_one_winner_among_concurrent_outcomes) {
    for (int i = 0; i < (weft::testing::slow ? 200 : 1000); ++i) {
        weft::loop l;
        promise<int> p(l);
        auto f = p.get_future();
        std::atomic<int> winners{0}, ready{0};
        const auto meet = [&] {
            ++ready;
            while (ready != 3) std::this_thread::yield();
        };
        std::thread a([&] { meet(), winners += p.set_value(1); });
        std::thread b(
            [&] { meet(), winners += p.set_error(std::make_error_code(std::errc::io_error)); });
        meet();
        winners += f.request_stop();
        a.join(), b.join();
        EXPECT_EQ(winners, 1);
        EXPECT_TRUE(f.is_ready());
    }
}

// When notified, frees the future and the promise at once, as a consumer on another thread may;
// then takes the memory that was freed, where it can, and writes to it.
struct frees_all : weft::detail::listener {
    std::unique_ptr<promise<int>> giver;
    std::unique_ptr<future<int>> taker;
    static constexpr std::size_t bytes = weft::detail::block_bytes<int>();
    std::byte* taken = nullptr;

    explicit frees_all(weft::executor& on)
        : listener{tell},
          giver(std::make_unique<promise<int>>(on)),
          taker(std::make_unique<future<int>>(giver->get_future())) {
        EXPECT_TRUE(weft::detail::core_of_future::core(*taker).word.attach(*this));
    }
    ~frees_all() {
        EXPECT_EQ(static_cast<std::size_t>(std::count(taken, taken + bytes, std::byte{0xa5})),
                  bytes)
            << "written to after it was freed";
        weft::detail::block_cache::release(taken, bytes);
    }
    static void tell(listener& l) noexcept {
        auto& me = static_cast<frees_all&>(l);
        me.taker.reset();
        me.giver.reset();
        me.taken = static_cast<std::byte*>(weft::detail::block_cache::acquire(bytes));
        std::fill_n(me.taken, bytes, std::byte{0xa5});
    }
};
TEST(promise, is_not_accessed_after_its_outcome_is_visible) {
    weft::loop l;
    EXPECT_TRUE(frees_all(l).giver->set_value(7));
    EXPECT_TRUE(frees_all(l).giver->set_error(weft::errc::closed));
    EXPECT_TRUE(frees_all(l).giver->set_exception(std::make_exception_ptr(3)));
    EXPECT_TRUE(frees_all(l).giver->set_stopped());
    EXPECT_TRUE(frees_all(l).taker->request_stop());
}

TEST(promise, carries_references_void_and_move_only_values) {
    weft::loop l;
    int n = 0;
    promise<int&> r(l);
    promise<> v(l);
    promise<moving> m(l);
    promise<const std::string> s(l);
    auto fr = r.get_future();
    auto fv = v.get_future();
    auto fm = m.get_future();
    auto fs = s.get_future();
    r.set_value(n);
    v.set_value();
    m.set_value(3);
    s.set_value(2u, 'x');
    EXPECT_EQ(&fr.get(), &n);
    fv.get();
    EXPECT_EQ(*fm.get().n, 3);
    EXPECT_EQ(fs.get(), "xx");
}

struct alignas(128) wide {
    char bytes[128] = {};
};
TEST(promise, carries_values_aligned_beyond_a_cache_line) {
    weft::loop l;
    promise<wide> p(l);
    const wide* at = nullptr;
    auto f = p.get_future().then([&](wide& w) { at = &w; }).then([] { return wide(); });
    p.set_value();
    l.run();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 128, 0u);
    EXPECT_TRUE(f.has_value());
}

struct throws_when_made {
    explicit throws_when_made(int n) { throw n; }
};
TEST(promise, delivers_an_exception_of_the_value_constructor) {
    weft::loop l;
    promise<throws_when_made> p(l);
    auto f = p.get_future();
    EXPECT_FALSE(f.has_value()) << "it is not there yet";
    EXPECT_TRUE(p.set_value(4));
    EXPECT_TRUE(f.is_ready());
    EXPECT_FALSE(f.has_value());
    EXPECT_THROW(f.get(), int);
}

// No other code can set the outcome: the promise has been claimed.
TEST(promise, is_broken_by_a_kill_in_the_constructor_of_its_value) {
    struct slow {
        explicit slow(int) { weft::this_coroutine::yield(); }
    };
    weft::loop l;
    promise<slow> p(l);
    auto f = p.get_future();
    weft::coroutine<void()> c([&] { p.set_value(1); });
    c.resume();
    EXPECT_FALSE(f.is_ready());
    c.kill();
    EXPECT_TRUE(f.is_ready());
    EXPECT_EQ(f.error(), weft::errc::broken_promise);
}

TEST(promise, breaks_the_promise_it_held_when_assigned) {
    weft::loop l;
    promise<int> p(l), q(l);
    auto f = p.get_future();
    p = std::move(q);
    EXPECT_EQ(f.error(), weft::errc::broken_promise);
    EXPECT_FALSE(q.set_value(1));
    EXPECT_TRUE(p.set_value(2));
    EXPECT_EQ(p.get_future().get(), 2);
}

TEST(promise, helpers_create_completed_futures) {
    weft::loop l;
    EXPECT_EQ(make_ready_future(l, std::string("a")).get(), "a");
    EXPECT_TRUE(make_ready_future().is_ready());
    EXPECT_EQ(&make_ready_future(l, 1).home(), &l);
    EXPECT_EQ(weft::make_failed_future<int>(weft::errc::closed).error(), weft::errc::closed);
    EXPECT_THROW(weft::make_failed_future<int>(std::make_exception_ptr(3)).get(), int);
    EXPECT_THROW(weft::make_stopped_future().get(), weft::stopped);
    EXPECT_EQ(weft::make_failed_future<int>(
                  std::make_exception_ptr(std::system_error(weft::errc::closed)))
                  .get_result()
                  .error(),
              weft::errc::closed);
}

TEST(promise, and_its_continuations_allocate_nothing_when_warm) {
    weft::loop l;
    const auto once = [&] {
        promise<int> p(l);
        auto f = p.get_future().then(plain, [](int n) { return n; }).then([](int n) { return n; });
        p.set_value(1);
        l.run();
        EXPECT_EQ(f.get(), 1);
    };
    once();
    const std::size_t before = weft::testing::allocations();
    for (int i = 0; i < 100; ++i) once();
    EXPECT_EQ(weft::testing::allocations(), before);
}

TEST(promise_misuse, second_get_future_aborts) {
    EXPECT_DEATH(
        {
            weft::loop l;
            promise<int> p(l);
            auto f = p.get_future();
            auto g = p.get_future();
        },
        "get_future of a promise");
}

}  // namespace
