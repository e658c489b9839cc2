// weft/base/detail/spin_lock.hpp under the interleavings of a few threads.
#include "weft/base/detail/spin_lock.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "model/names.hpp"

namespace {

using namespace model::names;

// Each thread takes the lock so many times. Two owners at once race, and so does an owner that does
// not see what the last owner did.
report hold(int thread_count, int times, unsigned deviations) {
    return explore(
        [=](execution& run) {
            weft::detail::spin_lock lock;
            model::var<int> count{0};
            for (int n = 0; n < thread_count; ++n)
                run.thread("owner", [&] {
                    for (int t = 0; t < times; ++t) {
                        const std::lock_guard held(lock);
                        count.write(count.read() + 1);
                    }
                });
            run.go();
            model::require(count.read() == thread_count * times, "each was inside");
        },
        {.deviations = deviations});
}

TEST(spin_lock, provides_mutual_exclusion_and_ordering) {
    expect_right(hold(2, 1, 8), bounded);  // a thread that spins may see old values for ever
    expect_right(hold(2, 2, 6), bounded);
    expect_right(hold(3, 1, 5), bounded);
}

TEST(spin_lock, excludes_a_thread_that_only_tries) {
    expect_right(explore(
                     [](execution& run) {
                         weft::detail::spin_lock lock;
                         model::var<int> count{0};
                         for (int n = 0; n < 2; ++n)
                             run.thread("owner", [&] {
                                 const std::lock_guard held(lock);
                                 count.write(count.read() + 1);
                             });
                         int tried = 0;
                         run.thread("tries", [&] {
                             for (int t = 0; t < 2; ++t) {
                                 if (!lock.try_lock()) continue;
                                 count.write(count.read() + 1);
                                 ++tried;
                                 lock.unlock();
                             }
                         });
                         run.go();
                         model::require(count.read() == 2 + tried, "each was inside");
                     },
                     {.deviations = 4}),
                 bounded);
}

// The owner continues only if the waiter yields the processor each time, however long the wait
// lasts.
TEST(spin_lock, yields_the_processor_however_long_it_waits) {
    expect_right(explore(
                     [](execution& run) {
                         weft::detail::spin_lock lock;
                         weft::atomic<int> beat{0};
                         lock.lock();
                         run.thread("owner", [&] {
                             for (int t = 1; t <= 40; ++t) {
                                 beat.store(t, std::memory_order_relaxed);
                                 model::spin();
                             }
                             lock.unlock();
                         });
                         run.thread("waits", [&] { const std::lock_guard held(lock); });
                         run.go();
                     },
                     {.deviations = 1}),
                 bounded);
}

}  // namespace
