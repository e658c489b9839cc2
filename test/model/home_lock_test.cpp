// weft/wait/detail/home_lock.hpp under the interleavings of threads that run one executor each, or
// none, and take it often enough to own it. Bounded by deviations, as what finds it taken spins.
#include "weft/wait/detail/home_lock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <mutex>

#include "model/bare_executor.hpp"
#include "model/names.hpp"

namespace {

using namespace model::names;

class place final : public model::bare_executor {
public:
    bool running_in_this_thread() const noexcept override {
        return weft::current_executor() == this;
    }
};

// Each owner takes the lock so many times, on an executor of its own. Two owners inside at once
// race, and so does an owner that does not see what the last owner did. `plain`: one more owner, on
// no executor.
report hold(std::initializer_list<int> times, bool plain, const model::options& how) {
    return explore(
        [=, all = std::vector<int>(times)](execution& run) {
            std::array<place, 3> places;
            weft::detail::home_lock lock;
            model::var<int> count{0};
            const auto add = [&] {
                const std::lock_guard held(lock);
                count.write(count.read() + 1);
            };
            int sum = plain ? 1 : 0;
            for (std::size_t n = 0; n < all.size(); ++n) {
                sum += all[n];
                run.thread("owner", [&, n] {
                    weft::detail::this_thread_runs() = {nullptr, &places[n]};
                    for (int t = 0; t < all[n]; ++t) add();
                    weft::detail::this_thread_runs() = {};
                });
            }
            if (plain) run.thread("on no executor", add);
            run.go();
            model::require(count.read() == sum, "each was inside");
        },
        how);
}

TEST(home_lock, provides_mutual_exclusion_and_ordering) {
    expect_right(hold({4, 1}, false, {.deviations = 4}), bounded);
    expect_right(hold({4, 4}, false, {.deviations = 3}), bounded);
    expect_right(hold({4, 4}, false, {.random_schedules = 20'000}), bounded);
}
TEST(home_lock, excludes_threads_on_no_executor_and_on_several) {
    expect_right(hold({4}, true, {.deviations = 4}), bounded);
    expect_right(hold({4, 3}, true, {.random_schedules = 20'000}), bounded);
    expect_right(hold({4, 3, 3}, false, {.random_schedules = 20'000}), bounded);
}
// A spin lock only.
TEST(home_lock, excludes_without_membarrier) {
    model::has_membarrier = false;
    const report r = hold({3, 2}, false, {.deviations = 3});
    model::has_membarrier = true;
    expect_right(r, bounded);
}

// An executor continues on another thread, which has seen all that the executor did before.
TEST(home_lock, belongs_to_an_executor_on_any_thread) {
    expect_right(explore(
                     [](execution& run) {
                         place at, other;
                         weft::detail::home_lock lock;
                         model::var<int> count{0};
                         weft::atomic<bool> next{false};
                         const auto add = [&](place& here) {
                             weft::detail::this_thread_runs() = {nullptr, &here};
                             {
                                 const std::lock_guard held(lock);
                                 count.write(count.read() + 1);
                             }
                             weft::detail::this_thread_runs() = {};
                         };
                         run.thread("first", [&] {
                             for (int t = 0; t < 3; ++t) add(at);
                             next.store(true, std::memory_order_release);
                         });
                         run.thread("then", [&] {
                             if (!next.load(std::memory_order_acquire)) return add(other);
                             add(at);
                         });
                         run.thread("other", [&] { add(other); });
                         run.go();
                         model::require(count.read() == 5, "each was inside");
                     },
                     {.deviations = 3}),
                 bounded);
}

}  // namespace
