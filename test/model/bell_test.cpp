// weft/hook/detail/bell.hpp under the interleavings of waiters, a poster that takes no lock and the
// thread at the bell. The awaited objects are units in a word. No thread changes the word in
// sequentially consistent order, as in libc's semaphores.
#include "weft/hook/detail/bell.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "model/names.hpp"
#include "weft/hook/detail/parking_line.hpp"

namespace {

using namespace model::names;
using weft::hook::parked;
using weft::hook::parked_list;
using weft::hook::parking_line;

using small_bell = weft::hook::bell<64, 1>;
constexpr auto relaxed = std::memory_order_relaxed;

enum class manner { as_told, rings_before_the_post, parks_without_a_rope };

report wait_for_units(int waiters, manner how, const model::options& bounds) {
    return explore(
        [=](execution& run) {
            small_bell bell;
            parking_line line;
            weft::atomic<int> units{0};
            weft::atomic<int> left{waiters};
            weft::atomic<bool> over{false};
            model::var<int> data{0};

            const auto take = [&] {
                int n = units.load(relaxed);
                while (n > 0)
                    if (units.compare_exchange_strong(n, n - 1, std::memory_order_acquire, relaxed))
                        return true;
                return false;
            };
            const auto wait = [&] {
                for (bool first = false;; first = true) {
                    parked p;
                    p.address = &units;
                    if (!line.enter(p, first, [&] { return !take(); })) return;
                    model::require(line.sleep(p, weft::never), "it has no deadline");
                }
            };
            for (int i = 0; i < waiters; ++i)
                run.thread("waits", [&] {
                    if (how == manner::parks_without_a_rope) {
                        wait();
                    } else {
                        const small_bell::rope mine(bell, &units);
                        model::require(static_cast<bool>(mine), "there is a place");
                        wait();
                    }
                    model::require(data.read() == 1, "what came before the post is seen");
                    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
                    over.store(true, relaxed);
                    bell.prompt();
                });
            run.thread("posts", [&] {
                data.write(1);
                for (int i = 0; i < waiters; ++i) {
                    if (how == manner::rings_before_the_post) bell.ring(&units);
                    units.fetch_add(1, std::memory_order_release);
                    if (how != manner::rings_before_the_post) bell.ring(&units);
                }
            });
            run.thread("stands", [&] {
                for (;;) {
                    const std::uint32_t seen =
                        bell.answer([&](const void* at, std::uint32_t n) noexcept {
                            parked_list claimed;
                            {
                                const std::lock_guard held(line);
                                line.claim(at, ~0u, n, claimed);
                            }
                            parking_line::wake_all(claimed);
                        });
                    if (over.load(relaxed)) return;
                    bell.sleep(seen);
                }
            });
            run.go();
            model::require(!line.may_hold_any(), "nobody is left in the line");
        },
        bounds);
}

TEST(bell, loses_no_post) {
    expect_right(wait_for_units(1, manner::as_told, {.deviations = 3}), bounded);
    expect_right(wait_for_units(2, manner::as_told, {.deviations = 1}), bounded);
    expect_right(wait_for_units(2, manner::as_told, {.random_schedules = 10'000}), bounded);
}

TEST(bell, checker_finds_lost_post_without_slot_or_when_rung_early) {
    expect_found(wait_for_units(1, manner::rings_before_the_post, {.deviations = 3}), "deadlock");
    expect_found(wait_for_units(1, manner::parks_without_a_rope, {.deviations = 3}), "deadlock");
}

}  // namespace
