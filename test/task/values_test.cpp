// What a coroutine, a fiber or a combinator may carry: the same kinds of values through each.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "test/task/on_loop.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/oneshot.hpp"
#include "weft/sync/unbounded_channel.hpp"
#include "weft/task/async_generator.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/generator.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/shared_task.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/when_all.hpp"
#include "weft/task/when_any.hpp"
#include "weft/task/with_nursery.hpp"
#include "weft/task/with_timeout.hpp"

namespace {

using namespace on_loop;

// Each kind: its name, its type, how one is made, and whether it is the one that was made.

struct only_moves {
    static constexpr const char* name = "only_moves";
    using type = std::unique_ptr<int>;
    static type make() { return std::make_unique<int>(7); }
    static bool good(const type& v) { return v != nullptr && *v == 7; }
};
struct without_default {
    static constexpr const char* name = "without_default";
    struct type {
        explicit type(int i) noexcept : n(i) {}
        int n;
    };
    static type make() { return type(7); }
    static bool good(const type& v) { return v.n == 7; }
};
struct may_throw {
    static constexpr const char* name = "may_throw";
    struct type {
        explicit type(int i) : n(i) {}
        type(type&& other) noexcept(false) : n(std::exchange(other.n, 0)) {}
        int n;
    };
    static type make() { return type(7); }
    static bool good(const type& v) { return v.n == 7; }
};
struct reference {
    static constexpr const char* name = "reference";
    using type = int&;
    static inline int place = 7;
    static type make() { return place; }
    static bool good(int& v) { return &v == &place; }
    static bool good(std::reference_wrapper<int> v) { return &v.get() == &place; }
};
struct no_value {
    static constexpr const char* name = "no_value";
    using type = void;
    static void make() {}
    static bool good(std::monostate) { return true; }
};

// What came of an await, a monostate where that is nothing.
template <class F>
decltype(auto) outcome(F f) {
    if constexpr (std::is_void_v<decltype(f())>)
        return f(), std::monostate();
    else
        return f();
}

template <class Kind>
class value_of : public ::testing::Test {
protected:
    using T = typename Kind::type;
    static task<T> made_at_once() { co_return Kind::make(); }
    static task<T> made_later() {
        co_await weft::sleep_for(1ms);
        co_return Kind::make();
    }
    static weft::eager_task<T> made_eagerly() {
        co_await weft::sleep_for(1ms);
        co_return Kind::make();
    }
    static weft::shared_task<T> made_for_many() {
        co_await weft::sleep_for(1ms);
        co_return Kind::make();
    }
    // Awaits `awaitable`, and checks the value. The value is referred to, and outlives the task.
    template <class A>
    static task<bool> arrives_well(A&& awaitable) {
        if constexpr (std::is_void_v<weft::await_result_t<A>>) {
            co_await std::forward<A>(awaitable);
            co_return true;
        } else {
            decltype(auto) v = co_await std::forward<A>(awaitable);
            co_return Kind::good(v);
        }
    }
};

using kinds_of_values =
    ::testing::Types<only_moves, without_default, may_throw, reference, no_value>;
struct names_of_kinds {
    template <class Kind>
    static std::string GetName(int) {
        return Kind::name;
    }
};
TYPED_TEST_SUITE(value_of, kinds_of_values, names_of_kinds);

TYPED_TEST(value_of, a_task) {
    EXPECT_TRUE(run(this->arrives_well(this->made_at_once())));
    EXPECT_TRUE(run(this->arrives_well(this->made_later())));
}

TYPED_TEST(value_of, an_eager_task) {
    const auto body = []() -> task<bool> {
        co_return co_await value_of<TypeParam>::arrives_well(value_of<TypeParam>::made_eagerly());
    };
    EXPECT_TRUE(run(body()));
}

// Awaited by a name it stays for the next; each gets the same one.
TYPED_TEST(value_of, a_shared_task) {
    const auto body = []() -> task<bool> {
        const auto t = value_of<TypeParam>::made_for_many();
        for (int i = 0; i < 2; ++i) {
            if constexpr (std::is_void_v<typename TypeParam::type>) {
                co_await t;
            } else {
                auto& v = co_await t;
                if (!TypeParam::good(v)) co_return false;
            }
        }
        co_return true;
    };
    EXPECT_TRUE(run(body()));
}

TYPED_TEST(value_of, when_all) {
    const auto body = []() -> task<bool> {
        auto [a, b] = co_await weft::when_all(value_of<TypeParam>::made_later(),
                                              value_of<TypeParam>::made_at_once());
        co_return TypeParam::good(a) && TypeParam::good(b);
    };
    EXPECT_TRUE(run(body()));
}

TYPED_TEST(value_of, when_all_of_a_range) {
    using value = typename TypeParam::type;
    const auto body = []() -> task<bool> {
        std::vector<task<value>> tasks;
        for (int i = 0; i < 3; ++i) tasks.push_back(value_of<TypeParam>::made_later());
        if constexpr (std::is_void_v<value>) {
            co_await weft::when_all(std::move(tasks));
        } else {
            for (auto& v : co_await weft::when_all(std::move(tasks)))
                if (!TypeParam::good(v)) co_return false;
        }
        co_return true;
    };
    EXPECT_TRUE(run(body()));
}

TYPED_TEST(value_of, when_any) {
    const auto body = []() -> task<bool> {
        auto first = co_await weft::when_any(value_of<TypeParam>::made_later(), number_in(1h, 1));
        co_return first.index == 0 && TypeParam::good(std::get<0>(first.value));
    };
    EXPECT_TRUE(run(body()));
}

TYPED_TEST(value_of, some) {
    using value = typename TypeParam::type;
    const auto body = []() -> task<bool> {
        std::vector<task<value>> tasks;
        for (int i = 0; i < 3; ++i) tasks.push_back(value_of<TypeParam>::made_later());
        for (auto& v : co_await weft::when_n(2, std::move(tasks)))
            if (!TypeParam::good(v.value)) co_return false;
        co_return true;
    };
    EXPECT_TRUE(run(body()));
}

TYPED_TEST(value_of, with_timeout) {
    const auto body = []() -> task<bool> {
        auto r = co_await weft::with_timeout(value_of<TypeParam>::made_later(), 1h);
        if constexpr (std::is_void_v<typename TypeParam::type>)
            co_return r.has_value();
        else
            co_return r&& TypeParam::good(*r);
    };
    EXPECT_TRUE(run(body()));
}

TYPED_TEST(value_of, schedule_on) {
    weft::testing::virtual_loop l(1);
    EXPECT_TRUE(
        run(l, this->arrives_well(weft::schedule_on(l.loop(), value_of<TypeParam>::made_later()))));
}

TYPED_TEST(value_of, with_nursery) {
    const auto body = []() -> task<bool> {
        bool child_was_good = false;
        const auto block = [&](weft::nursery& n) -> task<typename TypeParam::type> {
            auto child = n.spawn(value_of<TypeParam>::made_later());
            child_was_good = co_await value_of<TypeParam>::arrives_well(child.async_get());
            co_return TypeParam::make();
        };
        const bool good = co_await value_of<TypeParam>::arrives_well(weft::with_nursery(block));
        co_return good&& child_was_good;
    };
    EXPECT_TRUE(run(body()));
}

TYPED_TEST(value_of, an_await_of_a_thread) {
    decltype(auto) v = outcome(
        []() -> decltype(auto) { return weft::sync_wait(value_of<TypeParam>::made_at_once()); });
    EXPECT_TRUE(TypeParam::good(v));
}

TYPED_TEST(value_of, a_fiber_and_an_await_of_it) {
    weft::testing::virtual_loop l(1);
    bool good = false;
    weft::fiber f(
        [&] {
            auto inner = weft::spawn([]() -> typename TypeParam::type {
                return weft::await(value_of<TypeParam>::made_later());
            });
            decltype(auto) v = outcome([&]() -> decltype(auto) { return inner.get(); });
            good = TypeParam::good(v);
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_TRUE(good);
}

// -- what yields -------------------------------------------------------------------------------

template <class Kind>
class yielded : public ::testing::Test {};
using kinds_of_elements = ::testing::Types<only_moves, without_default, may_throw, reference>;
TYPED_TEST_SUITE(yielded, kinds_of_elements, names_of_kinds);

TYPED_TEST(yielded, by_an_async_generator) {
    const auto elements = []() -> weft::async_generator<typename TypeParam::type> {
        for (int i = 0; i < 2; ++i) {
            co_await weft::sleep_for(1ms);
            co_yield TypeParam::make();
        }
    };
    const auto body = [&]() -> task<int> {
        int good = 0;
        auto g = elements();
        while (auto* v = co_await g.next()) good += TypeParam::good(*v);
        co_return good;
    };
    EXPECT_EQ(run(body()), 2);
}

TYPED_TEST(yielded, by_a_generator) {
    const auto elements = []() -> weft::generator<typename TypeParam::type> {
        co_yield TypeParam::make();
        co_yield TypeParam::make();
    };
    int good = 0;
    for (auto&& v : elements()) good += TypeParam::good(v);
    EXPECT_EQ(good, 2);
}

// -- what is aligned to more than a coroutine's frame ---------------------------------------------

// Compilers lay a frame out for 16, so that no coroutine can have such a local. A fiber can.
struct wide {
    static constexpr const char* name = "wide";
    struct alignas(128) type {
        unsigned char bytes[128];
    };
    static type make() { return {{7}}; }
    static bool good(const type& v) {
        return v.bytes[0] == 7 && reinterpret_cast<std::uintptr_t>(&v) % 128 == 0;
    }
};

template <class F>
bool in_a_fiber(F f) {
    weft::testing::virtual_loop l(1);
    bool good = false;
    weft::fiber runs([&] { good = f(); }, {.on = l});
    l.run();
    runs.join();
    return good;
}
task<wide::type> wide_task() {
    co_await weft::sleep_for(1ms);
    co_return wide::make();
}
weft::eager_task<wide::type> wide_eager_task() {
    co_await weft::sleep_for(1ms);
    co_return wide::make();
}

TEST(wide_value, keeps_its_alignment_on_its_way_to_a_fiber) {
    EXPECT_TRUE(in_a_fiber([] {
        const wide::type v = weft::await(wide_task());
        return wide::good(v);
    }));
    EXPECT_TRUE(in_a_fiber([] {
        auto ahead = wide_eager_task();
        const wide::type v = weft::await(ahead);
        return wide::good(v);
    }));
    EXPECT_TRUE(in_a_fiber([] {
        const auto [a, b] = weft::await(weft::when_all(wide_task(), wide_task()));
        return wide::good(a) && wide::good(b);
    }));
    EXPECT_TRUE(in_a_fiber([] {
        const auto first = weft::await(weft::when_any(wide_task(), number_in(1h, 1)));
        return wide::good(std::get<0>(first.value));
    }));
    EXPECT_TRUE(in_a_fiber([] {
        auto inner = weft::spawn([] { return wide::make(); });
        const wide::type v = inner.get();
        return wide::good(v);
    }));
}

// -- what sends: what moves without throwing ------------------------------------------------------

template <class Kind>
class sent : public ::testing::Test {
protected:
    template <class Channel>
    static void goes_through(Channel& c) {
        weft::testing::virtual_loop l(1);
        bool good = false;
        weft::fiber sender([&] { EXPECT_TRUE(c.send(Kind::make())); }, {.on = l});
        weft::fiber receiver(
            [&] {
                auto item = c.recv();
                good = item && Kind::good(*item);
            },
            {.on = l});
        l.run();
        sender.join();
        receiver.join();
        EXPECT_TRUE(good);
    }
};
using kinds_of_items = ::testing::Types<only_moves, without_default, wide>;
TYPED_TEST_SUITE(sent, kinds_of_items, names_of_kinds);

TYPED_TEST(sent, through_a_rendezvous_channel) {
    weft::channel<typename TypeParam::type> c;
    this->goes_through(c);
}
TYPED_TEST(sent, through_a_bounded_channel) {
    weft::channel<typename TypeParam::type> c(3);
    this->goes_through(c);
}
TYPED_TEST(sent, through_an_unbounded_channel) {
    weft::unbounded_channel<typename TypeParam::type> c;
    this->goes_through(c);
}
TYPED_TEST(sent, through_a_oneshot) {
    weft::oneshot<typename TypeParam::type> c;
    this->goes_through(c);
}

// -- whichever move it is that throws -------------------------------------------------------------

struct fragile {
    static inline int moves_left = 0, living = 0;
    fragile() { ++living; }
    fragile(fragile&&) {
        if (moves_left-- == 0) throw 42;
        ++living;
    }
    ~fragile() { --living; }
};
task<fragile> fragile_one() { co_return fragile(); }
weft::eager_task<fragile> fragile_eager() { co_return fragile(); }

// Runs it with the first move throwing, the second, and so on, until it succeeds.
template <class Make>
void each_move_may_throw(Make make) {
    int thrown = 0;
    for (bool well = false; !well; ++thrown) {
        ASSERT_LT(thrown, 30) << "it never goes well";
        fragile::moves_left = thrown;
        try {
            run(make());
            well = true;
        } catch (int n) {
            EXPECT_EQ(n, 42);
        }
        EXPECT_EQ(fragile::living, 0);
    }
    EXPECT_GT(thrown, 1) << "nothing was moved";
}

TEST(fragile_value, of_a_task) {
    each_move_may_throw([]() -> task<> { static_cast<void>(co_await fragile_one()); });
}
TEST(fragile_value, of_an_eager_task) {
    each_move_may_throw([]() -> task<> {
        auto t = fragile_eager();
        static_cast<void>(co_await t);
    });
}
TEST(fragile_value, of_when_all) {
    each_move_may_throw([]() -> task<> {
        static_cast<void>(co_await weft::when_all(fragile_one(), fragile_one()));
    });
}
TEST(fragile_value, of_when_any) {
    each_move_may_throw([]() -> task<> {
        static_cast<void>(co_await weft::when_any(fragile_one(), number_in(1h, 1)));
    });
}
TEST(fragile_value, of_with_timeout) {
    each_move_may_throw([]() -> task<> {
        auto r = co_await weft::with_timeout(fragile_one(), 1h);
        EXPECT_TRUE(r);
    });
}
TEST(fragile_value, of_a_fiber) {
    each_move_may_throw([]() -> task<> {
        auto f = weft::spawn([] { return fragile(); });
        static_cast<void>(co_await f.async_get());
    });
}
TEST(fragile_value, of_with_nursery) {
    each_move_may_throw([]() -> task<> {
        static_cast<void>(
            co_await weft::with_nursery([](weft::nursery&) { return fragile_one(); }));
    });
}

}  // namespace
