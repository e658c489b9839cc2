#include "weft/stop/detail/stop_core.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "test/support/slow.hpp"
#include "weft/base/platform.hpp"
#include "weft/stop/stop_callback.hpp"
#include "weft/stop/stop_source.hpp"

namespace weft {
namespace {

using testing::slow;

// A chain of sources, each the child of the one before, stopped on the smallest stack there is.
void* stop_a_long_chain(void* last_reason) {
    std::vector<std::unique_ptr<stop_source>> chain;
    chain.push_back(std::make_unique<stop_source>());
    for (int i = 1; i < 100'000; ++i)
        chain.push_back(std::make_unique<stop_source>(chain.back()->get_token()));
    chain.front()->request_stop(stop_reason::shutdown);
    *static_cast<stop_reason*>(last_reason) = chain.back()->reason();
    while (!chain.empty()) chain.pop_back();
    return nullptr;
}

TEST(stop_core, stops_a_chain_of_any_length_without_recursion) {
    pthread_attr_t small;
    ASSERT_EQ(pthread_attr_init(&small), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&small, 256 * 1024), 0);
    pthread_t thread;
    stop_reason last = stop_reason::none;
    ASSERT_EQ(pthread_create(&thread, &small, stop_a_long_chain, &last), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&small);
    EXPECT_EQ(last, stop_reason::shutdown);
}

TEST(stop_core, adds_and_removes_in_any_order) {
    struct counted : detail::stop_node {
        int calls = 0;
        bool in = false;
        counted()
            : detail::stop_node([](detail::stop_node& n, stop_reason) noexcept {
                  ++static_cast<counted&>(n).calls;
              }) {}
    };
    std::mt19937 random(11);
    for (int round = 0; round < 50; ++round) {
        stop_source source;
        std::vector<counted> nodes(100);
        for (int step = 0; step < 1'000; ++step) {
            counted& n = nodes[random() % nodes.size()];
            if (n.in)
                n.detach();
            else
                n.attach(source.get_token());
            n.in = !n.in;
            if (step % 100 == 0) source.check();
        }
        source.request_stop();
        for (counted& n : nodes) {
            EXPECT_EQ(n.calls, n.in ? 1 : 0);
            n.detach();
        }
        source.check();
    }
}

// A callback that removes others before their turn: those are not called.
TEST(stop_core, does_not_call_what_a_callback_removes) {
    stop_source source;
    int calls = 0;
    auto counted = [&] { ++calls; };
    std::vector<std::unique_ptr<stop_callback<decltype(counted)>>> older;
    for (int i = 0; i < 10; ++i)
        older.push_back(
            std::make_unique<stop_callback<decltype(counted)>>(source.get_token(), counted));
    stop_callback first(source.get_token(), [&] {
        for (std::size_t i = 0; i < older.size(); i += 2) older[i].reset();
    });
    source.request_stop();
    EXPECT_EQ(calls, 5);
}

TEST(stop_core, calls_a_callback_created_by_a_callback_at_once) {
    stop_source source;
    int calls = 0;
    stop_callback outer(source.get_token(), [&] {
        stop_callback inner(source.get_token(), [&] { ++calls; });
        EXPECT_EQ(calls, 1);
        EXPECT_FALSE(source.request_stop());
    });
    source.request_stop();
    EXPECT_EQ(calls, 1);
}

// Callbacks are registered and destroyed on two threads while a third thread requests a stop: no
// callback is called twice, none that stays is missed, and none that was destroyed is touched
// (which the sanitizers detect).
TEST(stop_core, calls_short_lived_callbacks_at_most_once) {
    const int rounds = slow ? 30 : 100;
    for (int round = 0; round < rounds; ++round) {
        stop_source source;
        std::atomic<int> running{0};
        const auto come_and_go = [&] {
            ++running;
            for (bool over = false; !over;) {
                std::this_thread::yield();
                over = source.stop_requested();
                auto calls = std::make_unique<int>(0);
                {
                    stop_callback counted(source.get_token(), [&c = *calls] { ++c; });
                    stop_callback empty(source.get_token(), [] {});
                }
                EXPECT_LE(*calls, 1);
                if (over) {
                    EXPECT_EQ(*calls, 1);
                }
            }
        };
        std::thread a(come_and_go);
        std::thread b(come_and_go);
        while (running != 2) std::this_thread::yield();
        source.request_stop();
        a.join();
        b.join();
        source.check();
    }
}

}  // namespace
}  // namespace weft
