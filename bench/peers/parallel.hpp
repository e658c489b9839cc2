// The peers of the parallel subjects: a peer has `workers`, made for a number of threads, whose
// fib(n) and skynet(leaves) compute in these threads. Each call of either is a task of its own.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bench/harness.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/parallel/fork_join.hpp"
#include "weft/sched/pool.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/sync_wait.hpp"

#if __has_include(<oneapi/tbb/task_group.h>) && WEFT_BENCH_TBB
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#endif

namespace bench {

struct weft_fork_join {
    static constexpr const char* name = "weft.task";

    class workers {
    public:
        explicit workers(unsigned threads) : pool_(threads) {}
        std::uint64_t fib(int n) { return weft::sync_wait(weft::schedule_on(pool_, fib_of(n))); }
        std::uint64_t skynet(std::uint64_t leaves) {
            return weft::sync_wait(weft::schedule_on(pool_, sum_of(0, leaves)));
        }

    private:
        static weft::task<std::uint64_t> fib_of(int n) {
            if (n < 2) co_return static_cast<std::uint64_t>(n);
            auto [a, b] = co_await weft::fork_join(fib_of(n - 1), fib_of(n - 2));
            co_return a + b;
        }
        static weft::task<std::uint64_t> sum_of(std::uint64_t number, std::uint64_t leaves) {
            if (leaves == 1) co_return number;
            const std::uint64_t part = leaves / 10;
            auto child = [&](std::uint64_t i) { return sum_of(number + i * part, part); };
            auto [a, b, c, d, e, f, g, h, i, j] =
                co_await weft::fork_join(child(0), child(1), child(2), child(3), child(4), child(5),
                                         child(6), child(7), child(8), child(9));
            co_return a + b + c + d + e + f + g + h + i + j;
        }

        weft::pool pool_;
    };
};

// A fiber for each call, spawned and joined.
struct weft_fibers_of_a_pool {
    static constexpr const char* name = "weft.fiber";

    class workers {
    public:
        explicit workers(unsigned threads) : pool_(threads) {}
        std::uint64_t skynet(std::uint64_t leaves) {
            return weft::spawn([=] { return sum_of(0, leaves); }, {.on = pool_}).get();
        }

    private:
        static std::uint64_t sum_of(std::uint64_t number, std::uint64_t leaves) {
            if (leaves == 1) return number;
            const std::uint64_t part = leaves / 10;
            std::array<std::uint64_t, 10> sums{};
            {
                std::array<weft::fiber, 10> children;
                for (std::uint64_t i = 0; i != 10; ++i)
                    children[i] =
                        weft::fiber([=, &sums] { sums[i] = sum_of(number + i * part, part); },
                                    {.stack_bytes = 16 * 1024, .fp = weft::fp_environment::shared});
                for (weft::fiber& f : children) f.join();
            }
            std::uint64_t sum = 0;
            for (const std::uint64_t s : sums) sum += s;
            return sum;
        }

        weft::pool pool_;
    };
};

#if __has_include(<oneapi/tbb/task_group.h>) && WEFT_BENCH_TBB
// The children of a call that are tasks of the group: all, or all but the last, which the call
// itself runs, as fork_join does.
enum class onetbb_spawns { all, all_but_the_last };

template <onetbb_spawns Spawns>
struct onetbb {
    class workers {
    public:
        explicit workers(unsigned threads)
            : limit_(oneapi::tbb::global_control::max_allowed_parallelism, threads),
              arena_(static_cast<int>(threads)) {}
        std::uint64_t fib(int n) {
            return arena_.execute([=] { return fib_of(n); });
        }
        std::uint64_t skynet(std::uint64_t leaves) {
            return arena_.execute([=] { return sum_of(0, leaves); });
        }

    private:
        static std::uint64_t fib_of(int n) {
            if (n < 2) return static_cast<std::uint64_t>(n);
            std::uint64_t a = 0;
            std::uint64_t b = 0;
            oneapi::tbb::task_group g;
            g.run([&a, n] { a = fib_of(n - 1); });
            if constexpr (Spawns == onetbb_spawns::all)
                g.run([&b, n] { b = fib_of(n - 2); });
            else
                b = fib_of(n - 2);
            g.wait();
            return a + b;
        }
        static std::uint64_t sum_of(std::uint64_t number, std::uint64_t leaves) {
            if (leaves == 1) return number;
            const std::uint64_t part = leaves / 10;
            std::array<std::uint64_t, 10> sums{};
            constexpr std::uint64_t spawned = Spawns == onetbb_spawns::all ? 10 : 9;
            oneapi::tbb::task_group g;
            for (std::uint64_t i = 0; i != spawned; ++i)
                g.run([=, &sums] { sums[i] = sum_of(number + i * part, part); });
            for (std::uint64_t i = spawned; i != 10; ++i) sums[i] = sum_of(number + i * part, part);
            g.wait();
            std::uint64_t sum = 0;
            for (const std::uint64_t s : sums) sum += s;
            return sum;
        }

        oneapi::tbb::global_control limit_;
        oneapi::tbb::task_arena arena_;
    };
};
struct onetbb_task_group : onetbb<onetbb_spawns::all> {
    static constexpr const char* name = "onetbb.task_group";
};
struct onetbb_inline : onetbb<onetbb_spawns::all_but_the_last> {
    static constexpr const char* name = "onetbb.task_group.inline";
};
#else
struct no_onetbb : not_installed {
    static constexpr const char* missing = "oneTBB is not installed (libtbb-dev)";
};
struct onetbb_task_group : no_onetbb {
    static constexpr const char* name = "onetbb.task_group";
};
struct onetbb_inline : no_onetbb {
    static constexpr const char* name = "onetbb.task_group.inline";
};
#endif

}  // namespace bench
