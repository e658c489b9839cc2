#include "weft/stop/stop_callback.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>

#include "test/support/slow.hpp"
#include "weft/base/platform.hpp"
#include "weft/stop/stop_source.hpp"

namespace weft {
namespace {

using testing::slow;
using any_callback = stop_callback<std::function<void()>>;

static_assert(!std::is_copy_constructible_v<any_callback>);
static_assert(!std::is_move_constructible_v<any_callback>);
static_assert(std::is_nothrow_constructible_v<stop_callback<void (*)()>, stop_token, void (*)()>);

TEST(stop_callback, runs_on_the_requesting_thread_before_request_stop_returns) {
    stop_source source;
    std::thread::id where;
    stop_callback note(source.get_token(), [&] { where = std::this_thread::get_id(); });
    std::thread other([&] {
        source.request_stop();
        EXPECT_EQ(where, std::this_thread::get_id());
    });
    other.join();
    EXPECT_NE(where, std::this_thread::get_id());
}

TEST(stop_callback, runs_in_its_constructor_after_an_earlier_request) {
    stop_source source;
    source.request_stop(stop_reason::deadline);
    stop_reason seen = stop_reason::none;
    stop_callback note(source.get_token(), [&](stop_reason r) { seen = r; });
    EXPECT_EQ(seen, stop_reason::deadline);
}

TEST(stop_callback, accepts_a_function_with_or_without_the_reason) {
    stop_source source;
    stop_reason seen = stop_reason::none;
    int calls = 0;
    stop_callback with(source.get_token(), [&](stop_reason r) { seen = r; });
    stop_callback without(source.get_token(), [&] { ++calls; });
    source.request_stop(stop_reason::sibling_failed);
    EXPECT_EQ(seen, stop_reason::sibling_failed);
    EXPECT_EQ(calls, 1);
}

TEST(stop_callback, never_runs_for_a_token_that_cannot_be_stopped) {
    stop_callback never(stop_token(), [] { FAIL(); });
}

TEST(stop_callback, does_not_run_after_its_destruction) {
    stop_source source;
    {
        stop_callback gone(source.get_token(), [] { FAIL(); });
    }
    source.request_stop();
}

TEST(stop_callback, calls_its_function_with_the_given_value_category) {
    struct once {
        int* moved;
        void operator()() && { ++*moved; }
    };
    struct each {
        int* kept;
        void operator()() & { ++*kept; }
    };
    int moved = 0;
    int kept = 0;
    stop_source source;
    each e{&kept};
    stop_callback<once> by_value(source.get_token(), once{&moved});
    stop_callback<each&> by_reference(source.get_token(), e);
    source.request_stop();
    EXPECT_EQ(moved, 1);
    EXPECT_EQ(kept, 1);
}

TEST(stop_callback, accepts_a_move_only_function) {
    stop_source source;
    auto n = std::make_unique<int>(7);
    int seen = 0;
    stop_callback c(source.get_token(), [n = std::move(n), &seen] { seen = *n; });
    source.request_stop();
    EXPECT_EQ(seen, 7);
}

TEST(stop_callback, is_not_registered_when_its_function_constructor_throws) {
    struct broken {
        explicit broken(int) { throw std::runtime_error("no"); }
        void operator()() const {}
    };
    stop_source source;
    EXPECT_THROW(stop_callback<broken>(source.get_token(), 1), std::runtime_error);
    source.check();
    source.request_stop();
}

TEST(stop_callback, can_destroy_itself) {
    stop_source source;
    int later = 0;
    stop_callback last(source.get_token(), [&] { ++later; });
    std::optional<any_callback> self;
    self.emplace(source.get_token(), [&] { self.reset(); });
    source.request_stop();
    EXPECT_FALSE(self.has_value());
    EXPECT_EQ(later, 1) << "the request goes on";
    source.check();
}

TEST(stop_callback, can_replace_itself_at_the_same_address) {
    stop_source source;
    stop_source second;
    int calls = 0;
    std::optional<any_callback> self;
    self.emplace(source.get_token(), [&] {
        auto& s = second;
        auto& n = calls;
        self.emplace(s.get_token(), [&n] { ++n; });
    });
    source.request_stop();
    EXPECT_EQ(calls, 0);
    second.request_stop();
    EXPECT_EQ(calls, 1);
}

TEST(stop_callback_death, that_throws_terminates_the_program) {
    stop_source source;
    stop_callback broken(source.get_token(), [] { throw std::runtime_error("no"); });
    EXPECT_DEATH(source.request_stop(), "");
}

// --------------------------------------------------------------------------------- two threads

TEST(stop_callback, destructor_waits_while_another_thread_runs_it) {
    for (int round = 0; round < 5; ++round) {
        stop_source source;
        std::atomic<bool> within{false};
        std::atomic<bool> leaving{false};
        std::atomic<bool> through{false};
        std::optional<any_callback> c;
        c.emplace(source.get_token(), [&] {
            within = true;
            while (!leaving) std::this_thread::yield();
            for (int i = 0; i < 50; ++i) std::this_thread::yield();
            through = true;
        });
        std::thread other([&] { source.request_stop(); });
        while (!within) std::this_thread::yield();
        leaving = true;
        c.reset();
        EXPECT_TRUE(through);
        other.join();
    }
}

TEST(stop_callback, destructor_does_not_wait_for_another_callback) {
    stop_source source;
    std::atomic<bool> within{false};
    std::atomic<bool> leave{false};
    std::optional<any_callback> bystander;
    bystander.emplace(source.get_token(), [] { FAIL() << "removed before its turn"; });
    stop_callback first(source.get_token(), [&] {
        within = true;
        while (!leave) std::this_thread::yield();
    });
    std::thread other([&] { source.request_stop(); });
    while (!within) std::this_thread::yield();
    bystander.reset();  // would hang here
    leave = true;
    other.join();
}

// What the function uses is destroyed as soon as the destructor returns. The two threads meet at a
// gate and then race.
TEST(stop_callback, never_runs_after_its_destructor_on_another_thread) {
    const int rounds = slow ? 2'000 : 20'000;
    std::atomic<stop_source*> target{nullptr};
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over) {
            if (stop_source* s = target.exchange(nullptr))
                s->request_stop();
            else
                std::this_thread::yield();
        }
    });
    int ran = 0;
    for (int round = 0; round < rounds; ++round) {
        stop_source source;
        auto used = std::make_unique<int>(0);
        {
            stop_callback c(source.get_token(), [&u = *used] { ++u; });
            target = &source;
            for (int i = round % 4; i > 0 && target != nullptr; --i) std::this_thread::yield();
        }
        ran += *used;
        used.reset();
        while (!source.stop_requested()) std::this_thread::yield();
    }
    over = true;
    other.join();
    EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace weft
