#include "weft/stop/stop_source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "weft/stop/stop_callback.hpp"

namespace weft {
namespace {

static_assert(!std::is_copy_constructible_v<stop_source>);
static_assert(!std::is_move_constructible_v<stop_source>);

TEST(stop_source, starts_without_a_request) {
    stop_source source;
    EXPECT_FALSE(source.stop_requested());
    EXPECT_EQ(source.reason(), stop_reason::none);
    source.check();
}

TEST(stop_source, only_the_first_request_counts) {
    stop_source source;
    EXPECT_TRUE(source.request_stop());
    EXPECT_FALSE(source.request_stop(stop_reason::shutdown));
    EXPECT_TRUE(source.stop_requested());
    EXPECT_EQ(source.reason(), stop_reason::user);
    source.check();
}

TEST(stop_source, accepts_only_one_of_concurrent_requests) {
    for (int round = 0; round < 300; ++round) {
        stop_source source;
        std::atomic<int> calls{0};
        std::atomic<int> firsts{0};
        stop_callback counted(source.get_token(), [&] { ++calls; });
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] { firsts += source.request_stop() ? 1 : 0; });
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(firsts, 1);
        EXPECT_EQ(calls, 1);
    }
}

// ------------------------------------------------------------------------------------- parents

TEST(stop_source, inherits_the_stop_and_reason_of_its_parent) {
    stop_source parent;
    stop_source child(parent.get_token());
    stop_source grandchild(child.get_token());
    parent.check();
    parent.request_stop(stop_reason::sibling_failed);
    EXPECT_EQ(child.reason(), stop_reason::sibling_failed);
    EXPECT_EQ(grandchild.reason(), stop_reason::sibling_failed);
    parent.check();
    child.check();
}

TEST(stop_source, stopped_alone_does_not_stop_its_parent_and_keeps_its_reason) {
    stop_source parent;
    stop_source child(parent.get_token());
    int calls = 0;
    stop_callback counted(child.get_token(), [&] { ++calls; });
    child.request_stop(stop_reason::deadline);
    EXPECT_FALSE(parent.stop_requested());
    parent.request_stop(stop_reason::shutdown);
    EXPECT_EQ(child.reason(), stop_reason::deadline);
    EXPECT_EQ(calls, 1);
}

TEST(stop_source, with_a_stopped_parent_starts_stopped) {
    stop_source parent;
    parent.request_stop(stop_reason::deadline);
    stop_source child(parent.get_token());
    EXPECT_EQ(child.reason(), stop_reason::deadline);
}

TEST(stop_source, made_from_an_empty_token_has_no_parent) {
    stop_source source{stop_token()};
    EXPECT_FALSE(source.stop_requested());
    EXPECT_TRUE(source.request_stop());
}

TEST(stop_source, destroyed_child_is_not_stopped_with_its_parent) {
    stop_source parent;
    auto child = std::make_unique<stop_source>(parent.get_token());
    stop_source other(parent.get_token());
    child.reset();
    parent.check();
    EXPECT_TRUE(parent.request_stop());
    EXPECT_TRUE(other.stop_requested());
}

TEST(stop_source, notifies_callbacks_and_children_in_lifo_order) {
    std::vector<int> order;
    stop_source parent;
    auto note = [&](int n) { return [&order, n] { order.push_back(n); }; };
    stop_callback a(parent.get_token(), note(1));
    stop_source child(parent.get_token());
    stop_callback b(parent.get_token(), note(2));
    stop_callback c(child.get_token(), note(3));
    stop_callback d(child.get_token(), note(4));
    parent.request_stop();
    EXPECT_EQ(order, (std::vector<int>{2, 4, 3, 1}));
}

// ------------------------------------------------------------------------------------ its end

TEST(stop_source, can_be_destroyed_by_its_own_callback) {
    auto source = std::make_unique<stop_source>();
    std::optional<stop_callback<void (*)()>> last;
    last.emplace(source->get_token(), [] { FAIL() << "destroyed before its turn"; });
    struct ender {
        std::unique_ptr<stop_source>& source;
        std::optional<stop_callback<void (*)()>>& last;
        std::unique_ptr<stop_callback<ender>>* self;
        void operator()() const {
            auto& s = source;
            last.reset();
            self->reset();  // *this is destroyed
            s.reset();
        }
    };
    std::unique_ptr<stop_callback<ender>> first;
    first =
        std::make_unique<stop_callback<ender>>(source->get_token(), ender{source, last, &first});
    EXPECT_TRUE(source->request_stop());
    EXPECT_EQ(source, nullptr);
    EXPECT_EQ(first, nullptr);
}

TEST(stop_source, can_be_destroyed_with_its_parent_by_a_callback) {
    int others = 0;
    stop_source root;
    stop_callback last(root.get_token(), [&] { ++others; });
    auto parent = std::make_unique<stop_source>(root.get_token());
    auto child = std::make_unique<stop_source>(parent->get_token());
    std::optional<stop_callback<std::function<void()>>> self;
    self.emplace(child->get_token(), [&] {
        auto& c = child;
        auto& p = parent;
        self.reset();  // and with it the names it has captured
        c.reset();
        p.reset();
    });
    EXPECT_TRUE(root.request_stop());
    EXPECT_EQ(parent, nullptr);
    EXPECT_EQ(others, 1) << "the request goes on above";
}

// A callback ends itself and wakes the owner of the source, which ends the source at once, on
// another thread.
TEST(stop_source, destructor_waits_for_a_request_on_another_thread) {
    for (int round = 0; round < 20; ++round) {
        auto source = std::make_unique<stop_source>();
        std::atomic<bool> woken{false};
        std::atomic<bool> leaving{false};
        std::optional<stop_callback<std::function<void()>>> self;
        self.emplace(source->get_token(), [&] {
            auto& w = woken;
            auto& l = leaving;
            self.reset();  // and with it the names it has captured
            w = true;
            for (int i = 0; i < 20; ++i) std::this_thread::yield();
            l = true;
        });
        std::thread other([&s = *source] { s.request_stop(); });
        while (!woken) std::this_thread::yield();
        source.reset();
        EXPECT_TRUE(leaving);
        other.join();
    }
}

TEST(stop_source, child_can_be_destroyed_during_a_stop_of_its_parent) {
    for (int round = 0; round < 300; ++round) {
        stop_source parent;
        auto child = std::make_unique<stop_source>(parent.get_token());
        std::atomic<bool> ready{false};
        std::thread other([&] {
            ready = true;
            parent.request_stop();
        });
        while (!ready) std::this_thread::yield();
        child.reset();
        other.join();
        parent.check();
    }
}

TEST(stop_source_death, destroyed_before_its_callbacks_aborts) {
    const auto die = [] {
        auto source = std::make_unique<stop_source>();
        stop_callback late(source->get_token(), [] {});
        source.reset();
    };
    EXPECT_DEATH(die(), "weft: destruction of a stop source that has callbacks");
}

TEST(stop_source_death, stop_without_a_reason_aborts) {
    stop_source source;
    EXPECT_DEATH(source.request_stop(stop_reason::none), "weft: a stop requested for no reason");
}

}  // namespace
}  // namespace weft
