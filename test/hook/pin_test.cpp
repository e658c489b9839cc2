#include "weft/hook/detail/pin.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"

namespace {

using namespace weft;

struct told_pin {
    unsigned mutexes = 0;
    std::uint64_t fiber = 0;
} last_told;

TEST(pin, is_reported_for_a_fiber_that_waits_with_a_mutex) {
    hook::set_options({.pthreads = false});
    hook::on_held_lock([](const hook::pin& p) { last_told = {p.mutexes, p.fiber->info().id}; });
    const auto before = hook::held_lock_count();
    run([] {
        ::usleep(100);  // without a mutex: nothing
        std::mutex m;
        std::mutex n;
        const std::lock_guard held(m);
        {
            const std::lock_guard also(n);
        }
        ::usleep(100);
        EXPECT_EQ(last_told.fiber, this_fiber::get_id());
    });
    hook::on_held_lock(nullptr);
    EXPECT_EQ(hook::held_lock_count() - before, 1u);
    EXPECT_EQ(last_told.mutexes, 1u);
    hook::set_options({});
}

TEST(pin, handler_sees_writes_made_before_it_was_set) {
    static int what_it_needs;
    static std::atomic<int> found;
    what_it_needs = 0;
    found = 0;
    hook::set_options({.pthreads = false});
    std::atomic<bool> over{false};
    std::thread other([&] {
        run([&] {
            std::mutex m;
            const std::lock_guard held(m);
            while (!over.load(std::memory_order_relaxed)) ::usleep(100);
        });
    });
    what_it_needs = 42;
    hook::on_held_lock(
        [](const hook::pin&) { found.store(what_it_needs, std::memory_order_relaxed); });
    while (found.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    over.store(true, std::memory_order_relaxed);
    other.join();
    hook::on_held_lock(nullptr);
    hook::set_options({});
    EXPECT_EQ(found, 42);
}

TEST(pin, replaced_handler_is_returned_with_its_writes_visible) {
    static int what_it_needs;
    static int found;
    what_it_needs = 0;
    found = 0;
    std::thread other([] {
        what_it_needs = 42;
        hook::on_held_lock([](const hook::pin&) { found = what_it_needs; });
    });
    hook::pin_handler before = nullptr;
    while ((before = hook::on_held_lock(nullptr)) == nullptr) std::this_thread::yield();
    before({nullptr, "a test", 1});
    EXPECT_EQ(found, 42);
    other.join();
}

// Others can wait for it as fibers.
TEST(pin, is_not_reported_for_mutexes_owned_by_fibers) {
    const auto before = hook::held_lock_count();
    run([] {
        std::mutex m;
        const std::lock_guard held(m);
        ::usleep(100);
    });
    EXPECT_EQ(hook::held_lock_count(), before);
}

}  // namespace
