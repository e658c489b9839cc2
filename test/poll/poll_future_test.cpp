#include "weft/poll/poll_future.hpp"

#include <gtest/gtest.h>

#include <array>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include "test/poll/source.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/poll/boxed.hpp"
#include "weft/sched/virtual_loop.hpp"

namespace {

using weft::poll_context;
using weft::poll_future;

TEST(poll_future, is_polled_until_ready_and_gives_its_value_once) {
    source<std::string> s;
    poll_future<std::string> f;
    source<std::string>::context c(s);
    EXPECT_FALSE(f.is_ready());
    EXPECT_FALSE(f.poll(c));
    EXPECT_FALSE(f.poll(c));
    EXPECT_EQ(s.interested(), 1u);
    EXPECT_TRUE(s.tell("text")) << "its wake looks at once";
    EXPECT_TRUE(f.is_ready());
    EXPECT_EQ(f.get(), "text");
    EXPECT_TRUE(f.poll(c));
    EXPECT_EQ(f.take(), "text");
    EXPECT_TRUE(f.is_pending());
}

TEST(poll_future, can_be_polled_again_with_the_same_context) {
    source<int> s;
    source<int>::future f(s);
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(f.poll());
        EXPECT_TRUE(f.try_take().is_pending());
        EXPECT_TRUE(s.tell(i));
        const weft::poll<int> p = f.try_take();
        ASSERT_TRUE(p.is_ready());
        EXPECT_EQ(*p, i);
    }
}

TEST(poll_future, polls_at_each_wake_until_ready) {
    source<int> s;
    source<int>::future f(s);
    f.context().wake();
    EXPECT_EQ(f.data().looks, 1) << "news before the first poll is looked at too";
    f.poll();
    s.stir();
    s.stir();
    EXPECT_EQ(f.data().looks, 4);
    s.tell(1);
    EXPECT_EQ(f.data().looks, 5);
    f.context().wake();
    f.poll();
    EXPECT_EQ(f.data().looks, 5);
}

struct returns_a_poll {
    int needed;
    int looks = 0;
    weft::poll<std::unique_ptr<int>> operator()(poll_future<std::unique_ptr<int>>&,
                                                poll_context<returns_a_poll>&) {
        if (++looks < needed) return weft::pending;
        return std::make_unique<int>(looks);
    }
};
struct returns_nothing_or_done {
    bool done = false;
    weft::poll<> operator()(poll_future<>&, poll_context<returns_nothing_or_done>&) {
        if (done) return weft::poll<>(std::in_place);
        return weft::pending;
    }
};

TEST(poll_future, accepts_a_value_returned_by_its_operator) {
    poll_future<std::unique_ptr<int>, returns_a_poll> f(2);
    EXPECT_FALSE(f.poll());
    EXPECT_TRUE(f.poll());
    EXPECT_EQ(*f.take(), 2);
    poll_future<void, returns_nothing_or_done> g;
    EXPECT_FALSE(g.poll());
    g.data().done = true;
    EXPECT_TRUE(g.poll());
    g.take();
    EXPECT_TRUE(g.is_pending());
}

// --- values --------------------------------------------------------------------------------------

struct not_default {
    explicit not_default(int a, int b) : sum(a + b) {}
    not_default(not_default&&) = default;
    int sum;
};
struct alignas(128) poll_wide {
    std::array<char, 4096> bytes{};
};

TEST(poll_future, stores_any_value_inside_itself) {
    poll_future<not_default> plain;
    plain.set(2, 3);
    EXPECT_EQ(plain.take().sum, 5);

    poll_future<poll_wide> wide;
    static_assert(sizeof wide >= sizeof(poll_wide));
    wide.set();
    const auto at = reinterpret_cast<std::uintptr_t>(&wide.get());
    EXPECT_EQ(at % 128, 0u);
    EXPECT_LT(at - reinterpret_cast<std::uintptr_t>(&wide), sizeof wide);

    poll_future<weft::boxed<poll_wide>> boxed;
    static_assert(sizeof boxed < 64);
    boxed.set(std::in_place);
    EXPECT_EQ(boxed.take()->bytes[0], 0);

    int n = 1;
    poll_future<int&> reference;
    reference.set(n);
    EXPECT_EQ(&reference.take(), &n);

    poll_future<> nothing;
    nothing.set();
    nothing.take();
    EXPECT_TRUE(nothing.is_pending());
}

TEST(poll_future, destroys_an_untaken_value) {
    const auto counted = std::make_shared<int>(1);
    {
        poll_future<std::shared_ptr<int>> f;
        f.set(counted);
        EXPECT_EQ(counted.use_count(), 2);
    }
    EXPECT_EQ(counted.use_count(), 1);
}

// Its move is a copy, so that something is left to be destroyed.
struct poll_counted {
    int* living;
    explicit poll_counted(int& n) : living(&n) { ++n; }
    poll_counted(const poll_counted& other) : living(other.living) { ++*living; }
    ~poll_counted() { --*living; }
};

TEST(poll_future, keeps_nothing_of_a_taken_value) {
    int living = 0;
    poll_future<poll_counted> f;
    for (int i = 0; i < 2; ++i) {
        f.set(living);
        EXPECT_EQ(living, 1);
        EXPECT_EQ(f.take().living, &living);
        EXPECT_EQ(living, 0);
        f.set_exception(std::make_exception_ptr(1));
        EXPECT_THROW(f.take(), int);
        EXPECT_TRUE(f.is_pending());
    }
}

struct throws_when_made {
    explicit throws_when_made(bool now) {
        if (now) throw 'm';
    }
};

TEST(poll_future, stays_pending_when_its_value_constructor_throws) {
    poll_future<throws_when_made> f;
    EXPECT_THROW(f.set(true), char);
    EXPECT_TRUE(f.is_pending());
    f.set(false);
    EXPECT_TRUE(f.is_ready());
}

struct throws_at_the_second_look {
    int looks = 0;
    void operator()(poll_future<int>&, poll_context<throws_at_the_second_look>&) {
        if (++looks == 2) throw std::runtime_error("no news");
    }
};

TEST(poll_future, completes_with_what_its_operator_throws) {
    poll_future<int, throws_at_the_second_look> f;
    EXPECT_FALSE(f.poll());
    f.context().wake();
    EXPECT_TRUE(f.is_ready());
    EXPECT_THROW(f.get(), std::runtime_error);
    EXPECT_THROW(f.take(), std::runtime_error);
    EXPECT_TRUE(f.is_pending());
}

// An operator that is noexcept is called without a handler around it; what it returns is still
// moved within one.
struct counts_down_without_a_throw {
    int left;
    void operator()(poll_future<int>& f, poll_context<counts_down_without_a_throw>&) noexcept {
        if (--left == 0) f.set(7);
    }
};
struct throws_as_it_moves {
    explicit throws_as_it_moves(int n) : number(n) {}
    throws_as_it_moves(throws_as_it_moves&& other) : number(other.number) {
        if (number == 2) throw std::runtime_error("does not move");
    }
    throws_as_it_moves& operator=(throws_as_it_moves&&) = delete;
    int number;
};
struct returns_without_a_throw {
    int next = 0;
    weft::poll<throws_as_it_moves> operator()(poll_future<throws_as_it_moves>&,
                                              poll_context<returns_without_a_throw>&) noexcept {
        if (next++ == 0) return weft::pending;
        return weft::poll<throws_as_it_moves>(std::in_place, 2);
    }
};

TEST(poll_future, polls_an_operator_that_is_noexcept_as_any_other) {
    poll_future<int, counts_down_without_a_throw> f(3);
    EXPECT_FALSE(f.poll());
    f.context().wake();
    EXPECT_FALSE(f.is_ready());
    f.context().wake();
    ASSERT_TRUE(f.is_ready());
    f.context().wake();
    EXPECT_EQ(f.data().left, 0) << "a wake of a ready future does nothing";
    EXPECT_EQ(f.take(), 7);
}

TEST(poll_future, completes_with_what_the_move_of_a_value_throws_from_a_noexcept_operator) {
    poll_future<throws_as_it_moves, returns_without_a_throw> f;
    EXPECT_FALSE(f.poll());
    f.context().wake();
    ASSERT_TRUE(f.is_ready());
    EXPECT_THROW(f.get(), std::runtime_error);
}

// --- one side has ended --------------------------------------------------------------------------

TEST(poll_future, is_abandoned_when_its_context_ends_first) {
    source<int> s;
    poll_future<int> f;
    {
        source<int>::context c(s);
        f.poll(c);
    }
    EXPECT_EQ(s.interested(), 0u);
    ASSERT_TRUE(f.is_ready());
    try {
        f.take();
        ADD_FAILURE();
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), weft::errc::broken_promise);
    }
    source<int>::context another(s);
    EXPECT_FALSE(f.poll(another)) << "one context at a time, and it is the only one now";
}

TEST(poll_future, reports_abandonment_in_a_result) {
    struct never_says {
        void operator()(poll_future<weft::result<int>>&, poll_context<never_says>&) {}
    };
    poll_future<weft::result<int>> f;
    {
        poll_context<never_says> c;
        f.poll(c);
    }
    EXPECT_EQ(f.take().error(), weft::errc::broken_promise);
}

TEST(poll_future, reports_abandonment_in_a_result_of_std_errc_alone) {
    using of_std = weft::result<int, std::errc>;
    struct never_says {
        void operator()(poll_future<of_std>&, poll_context<never_says>&) {}
    };
    poll_future<of_std> f;
    {
        poll_context<never_says> c;
        f.poll(c);
    }
    EXPECT_EQ(f.take().error(), std::errc::broken_pipe);
}

TEST(poll_future, of_void_does_not_complete_from_an_earlier_taken_value) {
    struct never_says {
        void operator()(poll_future<>&, poll_context<never_says>&) {}
    };
    poll_future<> f;
    f.set();
    f.take();
    {
        poll_context<never_says> c;
        f.poll(c);
    }
    EXPECT_THROW(f.take(), std::system_error);
}

TEST(poll_future, destroyed_leaves_its_context_unbound) {
    source<int> s;
    source<int>::context c(s);
    {
        poll_future<int> f;
        f.poll(c);
        EXPECT_TRUE(c.is_bound());
    }
    EXPECT_FALSE(c.is_bound());
    EXPECT_TRUE(s.tell(1));
    EXPECT_EQ(c.data().looks, 1);
    poll_future<int> next;
    EXPECT_TRUE(next.poll(c)) << "it has the news still";
    EXPECT_EQ(next.take(), 1);
}

TEST(poll_future_death, polled_with_a_second_context) {
    source<int> s;
    EXPECT_DEATH(
        {
            poll_future<int> f;
            source<int>::context one(s);
            source<int>::context two(s);
            f.poll(one);
            f.poll(two);
        },
        "a poll_future that polls context 0x[0-9a-f]+ is polled with context 0x[0-9a-f]+ "
        "\\(.*poll_future_test.cpp");
    EXPECT_DEATH(
        {
            poll_future<int> f;
            poll_future<int> g;
            source<int>::context c(s);
            f.poll(c);
            g.poll(c);
        },
        "a context that is polled by poll_future 0x[0-9a-f]+ is polled by poll_future 0x");
}

TEST(poll_future_death, set_twice_or_taken_too_early) {
    EXPECT_DEATH(
        {
            poll_future<int> f;
            f.set(1);
            f.set(2);
        },
        "a poll_future that is ready is set once more .*poll_future_test.cpp");
    EXPECT_DEATH(poll_future<int>().take(), "the value of a poll_future that is pending");
}

TEST(poll_future_death, awaited_twice_or_destroyed_while_awaited) {
    EXPECT_DEATH(
        {
            weft::testing::virtual_loop l(1);
            poll_future<int> f;
            weft::fiber one([&] { weft::await(f); }, {.on = l});
            weft::fiber two([&] { weft::await(f); }, {.on = l});
            l.run();
        },
        "a second one awaits a poll_future that is awaited: fiber");
    EXPECT_DEATH(
        {
            weft::testing::virtual_loop l(1);
            auto f = std::make_unique<poll_future<int>>();
            weft::fiber one([&] { weft::await(*f); }, {.on = l});
            l.loop().run_until_idle();
            f.reset();
        },
        "a poll_future is destroyed while it is awaited");
}

}  // namespace
