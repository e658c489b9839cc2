// weft::generator: a resume is the step of its iterator, a yield gives a number.
#pragma once

#include <optional>

#include "bench/bodies.hpp"
#include "weft/task/generator.hpp"

namespace bench {

struct weft_generator : stackless_peer {
    static constexpr const char* name = "weft.generator";
    using numbers = weft::generator<std::uint64_t>;

    class coroutine {
    public:
        template <class Body>
        explicit coroutine(Body body) : numbers_(run(body)) {}
        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;

        [[gnu::always_inline]] void resume() {
            if (at_)
                ++*at_;
            else
                at_.emplace(numbers_.begin());
        }

    private:
        template <unsigned Weight>
        static numbers run(counting<Weight>) {
            do {
                world.resumes += Weight;
                co_yield Weight;
            } while (!world.finishing);
        }
        static numbers run(holding) {
            world.resumes += 1;
            counted object;
            escape(&object);
            co_yield 1;
        }
        static numbers run(empty_handed) {
            world.resumes += 1;
            co_yield 1;
        }

        numbers numbers_;
        std::optional<decltype(std::declval<numbers&>().begin())> at_;
    };

    template <class Body>
    static coroutine make(stacks&, Body body) {
        return coroutine(body);
    }

    // Gives one number, the sum of its leaves.
    static numbers sum_of(std::uint64_t number, std::uint64_t leaves) {
        if (leaves == 1) {
            co_yield number;
            co_return;
        }
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < 10; ++i) {
            const std::uint64_t part = leaves / 10;
            for (const std::uint64_t child : sum_of(number + i * part, part)) sum += child;
        }
        co_yield sum;
    }
    static std::uint64_t skynet(stacks&) {
        std::uint64_t sum = 0;
        for (const std::uint64_t all : sum_of(0, skynet_leaves)) sum += all;
        return sum;
    }
};

}  // namespace bench
