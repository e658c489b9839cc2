#include "weft/fiber/fiber_local.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::virtual_loop;
using ints = std::vector<int>;

// Notes its end, and whether that was in a fiber.
struct noted {
    ints* ends = nullptr;
    int mark = 0;
    ~noted() {
        if (ends != nullptr) ends->push_back(this_fiber::exists() ? mark : -mark);
    }
};

TEST(fiber_local, has_one_value_per_fiber) {
    virtual_loop l(1);
    fiber_local<int> n;
    ints seen;
    std::vector<fiber> all;
    for (int id = 1; id <= 3; ++id)
        all.emplace_back(
            [&, id] {
                EXPECT_FALSE(n.has_value());
                EXPECT_EQ(*n, 0);
                *n = id;
                this_fiber::yield();
                EXPECT_EQ(*n, id);
                EXPECT_TRUE(n.has_value());
            },
            fiber_options{.on = l});
    l.run();
    for (fiber& f : all) f.join();
}

TEST(fiber_local, takes_no_memory_in_a_fiber_that_uses_none) {
    virtual_loop l(1);
    fiber_local<int> n;
    fiber f(
        [&] {
            EXPECT_FALSE(n.has_value());
            EXPECT_EQ(detail::fiber_core::current()->locals, nullptr);
            *n = 1;
            EXPECT_NE(detail::fiber_core::current()->locals, nullptr);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(fiber_local, is_created_by_its_function_at_first_use) {
    virtual_loop l(1);
    int made = 0;
    fiber_local<std::string> s([&] {
        ++made;
        return std::string("hello");
    });
    fiber f(
        [&] {
            EXPECT_EQ(made, 0);
            EXPECT_EQ(s->size(), 5u);
            EXPECT_EQ(*s, "hello");
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(made, 1);
}

TEST(fiber_local, is_retried_after_its_function_throws) {
    virtual_loop l(1);
    int tries = 0;
    fiber_local<int> n([&]() -> int {
        if (++tries == 1) throw std::runtime_error("no");
        return 5;
    });
    fiber f(
        [&] {
            EXPECT_THROW(*n, std::runtime_error);
            EXPECT_FALSE(n.has_value());
            EXPECT_EQ(*n, 5);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(fiber_local, is_destroyed_in_reverse_order_of_creation) {
    virtual_loop l(1);
    ints ends;
    fiber_local<noted> a, b, c;
    fiber f(
        [&] {
            *b = noted{&ends, 2};
            a->ends = &ends, a->mark = 1;
            c->ends = &ends, c->mark = 3;
            ends.clear();
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(ends, (ints{3, 1, 2})) << "in the fiber";
}

TEST(fiber_local, is_destroyed_after_an_exception_and_after_a_stop) {
    virtual_loop l(1);
    ints ends;
    fiber_local<noted> n;
    fiber thrower(
        [&] {
            n->ends = &ends, n->mark = 1;
            throw 1;
        },
        {.on = l});
    l.run();
    EXPECT_EQ(ends, ints{1});
    EXPECT_THROW(thrower.join(), int);
    fiber sleeper(
        [&] {
            n->ends = &ends, n->mark = 2;
            this_fiber::sleep_for(1h);
        },
        {.on = l});
    fiber stopper([&] { sleeper.request_stop(); }, {.on = l});
    l.run();
    EXPECT_EQ(ends, (ints{1, 2}));
    sleeper.join();
    stopper.join();
}

TEST(fiber_local, is_destroyed_when_the_fiber_is_killed) {
    ints ends;
    fiber_local<noted> n;
    {
        loop l;
        fiber(
            [&] {
                n->ends = &ends, n->mark = 4;
                shield s;
                this_fiber::sleep_for(1h);
            },
            {.on = l})
            .detach();
        l.run_until_idle();
    }
    EXPECT_EQ(ends, ints{4});
}

TEST(fiber_local, lets_its_destructor_use_other_locals) {
    virtual_loop l(1);
    static fiber_local<int> other;
    static int seen;
    seen = 0;
    struct uses_another {
        ~uses_another() { seen = ++*other; }
    };
    fiber_local<uses_another> n;
    fiber f([&] { static_cast<void>(*n); }, {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(seen, 1);
}

TEST(fiber_local, has_no_limit_on_its_count) {
    virtual_loop l(1);
    constexpr std::size_t count = 3000;
    std::vector<std::unique_ptr<fiber_local<std::size_t>>> all;
    for (std::size_t i = 0; i < count; ++i)
        all.push_back(std::make_unique<fiber_local<std::size_t>>());
    fiber f(
        [&] {
            for (std::size_t i = 0; i < count; ++i) **all[i * 7 % count] = i * 7 % count;
            for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(**all[i], i);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(fiber_local, is_per_thread_on_a_plain_thread_and_ends_with_it) {
    ints ends;
    fiber_local<noted> n;
    std::thread([&] {
        n->ends = &ends, n->mark = 7;
        EXPECT_TRUE(n.has_value());
    }).join();
    EXPECT_EQ(ends, ints{-7});
    EXPECT_FALSE(n.has_value());
}

// -- at the end of ends ---------------------------------------------------------------------------

struct pong;
int pings = 0;
struct ping {
    int n = 0;
    ~ping();
    // The last one stays, and is no leak here.
    static void* operator new(std::size_t bytes) noexcept {
        static std::size_t place[1];
        static_assert(sizeof place >= sizeof(int));
        return bytes <= sizeof place ? place : nullptr;
    }
    static void operator delete(void*) noexcept {}
};
struct pong {
    int n = 0;
    ~pong();
};
fiber_local<ping> a_ping;
fiber_local<pong> a_pong;
ping::~ping() {
    if (++pings > 1000) fail("destructors of fiber_locals have no end");
    ++a_pong->n;
}
pong::~pong() { ++a_ping->n; }

// In three more rounds there is one destructor each.
TEST(fiber_local, recreated_by_destructors_is_reported_after_four_rounds) {
    pings = 0;
    virtual_loop l(1);
    fiber f([] { ++a_ping->n; }, {.name = "circle", .on = l});
    ::testing::internal::CaptureStderr();
    l.run();
    const std::string said = ::testing::internal::GetCapturedStderr();
    f.join();
    EXPECT_EQ(pings, 2);
    EXPECT_NE(said.find("make others anew without end: 1 are left by fiber"), said.npos) << said;
    EXPECT_NE(said.find("\"circle\""), said.npos) << said;
}

fiber_local<int> used_late;

// Memory of the sizes that the thread's table had, which it has freed, as another owner's.
struct neighbours {
    std::vector<std::unique_ptr<ints>> all;
    neighbours() {
        for (int i = 0; i < 64; ++i) all.push_back(std::make_unique<ints>(of(i)));
    }
    bool are_whole() const {
        for (int i = 0; i < 64; ++i)
            if (*all[static_cast<std::size_t>(i)] != of(i)) return false;
        return true;
    }
    static ints of(int i) { return ints(static_cast<std::size_t>(i % 32), i); }
};
struct uses_one_late {
    bool* fine = nullptr;
    ~uses_one_late() {
        if (fine == nullptr) return;
        const neighbours others;
        *fine = !used_late.has_value() && *used_late == 0;
        *used_late = 8;
        *fine = *fine && *used_late == 8 && others.are_whole();
    }
};

TEST(fiber_local, used_after_thread_exit_cleanup_is_recreated) {
    bool fine = false;
    std::thread([&] {
        thread_local uses_one_late late;  // made before the thread's locals: destroyed after them
        late.fine = &fine;
        *used_late = 7;
    }).join();
    EXPECT_TRUE(fine);
}

TEST(fiber_local, is_destroyed_before_older_thread_locals_even_after_a_fiber) {
    ints ends;
    fiber_local<noted> n;
    fiber_local<int> of_fiber;
    std::thread([&] {
        {
            virtual_loop l(1);
            fiber f([&] { *of_fiber = 1; }, {.on = l});
            l.run();
            f.join();
        }
        thread_local noted early;
        early.ends = &ends, early.mark = 1;
        n->ends = &ends, n->mark = 2;
    }).join();
    EXPECT_EQ(ends, (ints{-2, -1}));
}

// Not only for one round: each use, and each end, comes after the end before.
template <int>
void note_late(fiber_local<noted>& n, ints& ends) {
    struct notes {
        fiber_local<noted>* n = nullptr;
        ints* ends = nullptr;
        ~notes() {
            if (n != nullptr) (*n)->ends = ends, (*n)->mark = 1;
        }
    };
    thread_local notes late;
    late.n = &n;
    late.ends = &ends;
}
TEST(fiber_local, recreated_at_thread_exit_is_destroyed_as_well) {
    ints ends;
    fiber_local<noted> n;
    std::thread([&] {
        note_late<0>(n, ends);
        note_late<1>(n, ends);
        n->ends = &ends, n->mark = 1;
    }).join();
    EXPECT_EQ(ends, (ints{-1, -1, -1}));
}

// There are as many rounds as thread_locals of weft's own that end them; what comes later stays.
template <int>
void use_late(bool& fine) {
    thread_local uses_one_late late;
    late.fine = &fine;
}
TEST(fiber_local_death, can_be_used_by_many_destructors_at_thread_exit) {
    const auto ends = [] {
        std::thread([] {
            static bool fine = false;
            static thread_local const struct at_exit {
                ~at_exit() { ::_exit(fine ? 3 : 4); }
            } last;
            static_cast<void>(last);
            use_late<0>(fine);
            use_late<1>(fine);
            use_late<2>(fine);
            use_late<3>(fine);
            *used_late = 7;
        }).join();
    };
    EXPECT_EXIT(ends(), ::testing::ExitedWithCode(3), "");
}

TEST(fiber_local_death, without_a_default_constructor_needs_a_function) {
    struct number {
        int value;
        explicit number(int n) : value(n) {}
    };
    const fiber_local<number> with([] { return number(5); });
    EXPECT_EQ(with->value, 5);
    const fiber_local<number> without;
    EXPECT_DEATH(static_cast<void>(*without),
                 "a fiber_local without a function for a type without a default");
}

TEST(fiber_local_death, can_be_used_by_the_destructor_of_a_static) {
    const auto exits = [] {
        static bool fine = false;
        static const struct at_exit {
            ~at_exit() {
                {
                    uses_one_late u{&fine};
                }
                ::_exit(fine ? 3 : 4);
            }
        } last;
        static_cast<void>(last);
        *used_late = 7;
        std::exit(0);
    };
    EXPECT_EXIT(exits(), ::testing::ExitedWithCode(3), "");
}

TEST(fiber_local, is_distinct_from_an_earlier_one_at_the_same_address) {
    virtual_loop l(1);
    fiber f(
        [] {
            for (int i = 0; i < 10; ++i) {
                const fiber_local<int> n;
                EXPECT_FALSE(n.has_value());
                *n = 1;
            }
        },
        {.on = l});
    l.run();
    f.join();
}

}  // namespace
}  // namespace weft
