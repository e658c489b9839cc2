// libfork, which steals continuations, on its two pools: busy_pool, whose workers never sleep, and
// lazy_pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <libfork.hpp>

#include "bench/lists.hpp"

namespace bench {

template <class Pool>
struct libfork_on {
    class workers {
    public:
        explicit workers(unsigned threads) : pool_(threads) {}
        std::uint64_t fib(int n) { return lf::sync_wait(pool_, fib_of, n); }
        std::uint64_t skynet(std::uint64_t leaves) {
            return lf::sync_wait(pool_, sum_of, std::uint64_t{0}, leaves);
        }

    private:
        static constexpr auto fib_of = [](auto fib_of, int n) -> lf::task<std::uint64_t> {
            if (n < 2) co_return static_cast<std::uint64_t>(n);
            std::uint64_t a;
            std::uint64_t b;
            co_await lf::fork(&a, fib_of)(n - 1);
            co_await lf::call(&b, fib_of)(n - 2);
            co_await lf::join;
            co_return a + b;
        };
        static constexpr auto sum_of = [](auto sum_of, std::uint64_t number,
                                          std::uint64_t leaves) -> lf::task<std::uint64_t> {
            if (leaves == 1) co_return number;
            const std::uint64_t part = leaves / 10;
            std::uint64_t sums[10];
            for (std::uint64_t i = 0; i != 9; ++i)
                co_await lf::fork(&sums[i], sum_of)(number + i * part, part);
            co_await lf::call(&sums[9], sum_of)(number + 9 * part, part);
            co_await lf::join;
            std::uint64_t sum = 0;
            for (const std::uint64_t s : sums) sum += s;
            co_return sum;
        };

        Pool pool_;
    };
};

struct libfork_busy : libfork_on<lf::busy_pool> {
    static constexpr const char* name = "libfork.busy_pool";
};
struct libfork_lazy : libfork_on<lf::lazy_pool> {
    static constexpr const char* name = "libfork.lazy_pool";
};

struct lists : no_peers<lists> {
    static constexpr peers<libfork_busy, libfork_lazy> fib{};
    static constexpr peers<libfork_busy, libfork_lazy> skynet{};
};

}  // namespace bench
