// TooManyCooks: its task, resumed by the benchmark; and spawn_tuple and spawn_many on its pool,
// ex_cpu.
#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <tmc/ex_cpu.hpp>
#include <tmc/spawn_many.hpp>
#include <tmc/spawn_tuple.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

#include "bench/lists.hpp"

namespace bench {

struct toomanycooks_pool {
    static constexpr const char* name = "toomanycooks.ex_cpu";

    class workers {
    public:
        explicit workers(unsigned threads) {
            pool_.set_thread_count(threads);
            pool_.init();
        }
        std::uint64_t fib(int n) { return tmc::post_waitable(pool_, fib_of(n)).get(); }
        std::uint64_t skynet(std::uint64_t leaves) {
            return tmc::post_waitable(pool_, sum_of(0, leaves)).get();
        }

    private:
        using task = tmc::task<std::uint64_t>;

        static task fib_of(int n) {
            if (n < 2) co_return static_cast<std::uint64_t>(n);
            auto [a, b] = co_await tmc::spawn_tuple(fib_of(n - 1), fib_of(n - 2));
            co_return a + b;
        }
        static task sum_of(std::uint64_t number, std::uint64_t leaves) {
            if (leaves == 1) co_return number;
            const std::uint64_t part = leaves / 10;
            std::array<task, 10> children;
            for (std::uint64_t i = 0; i != 10; ++i) children[i] = sum_of(number + i * part, part);
            std::uint64_t sum = 0;
            for (const std::uint64_t s : co_await tmc::spawn_many<10>(children.data())) sum += s;
            co_return sum;
        }

        tmc::ex_cpu pool_;
    };
};

struct lists : no_peers<lists> {
    static constexpr peers<toomanycooks_pool> fib{};
    static constexpr peers<toomanycooks_pool> skynet{};
};

}  // namespace bench
