// switch: one resume and the yield that returns from it.
//
// Alone: one coroutine, one loop, so that the loop costs next to nothing. In order: round robin.
// Hetero: sixteen bodies, so sixteen yield sites, visited in a fixed pseudo-random order: no branch
// predictor sees a pattern short enough to learn. Shuffled: one body, a fixed shuffled order over
// more stacks than the caches hold; a peer that can prefetch does so a few entries ahead, as a run
// queue would. (Only control blocks: the body here keeps nothing on its stack, and a hint for
// memory that is never touched costs a walk of the page tables.)

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "bench/peers.hpp"
#include "bench/row.hpp"
#include "bench/subjects.hpp"

namespace bench {

namespace {

constexpr std::size_t prefetch_ahead = 8;

std::vector<std::uint32_t> shuffled(std::size_t count) {
    std::vector<std::uint32_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<std::uint32_t>(i);
    std::mt19937 random(20240229);  // fixed: every peer and every run has the same order
    for (std::size_t i = count - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    return order;
}

auto alone(std::size_t stack_bytes, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        typename Peer::stacks stacks(stack_bytes);
        row<coroutine_of<Peer, plain>> row(1);
        row.emplace(0, [&] { return make<Peer, plain>(stacks); });
        auto& only = row[0];
        only.resume();
        m.start();
        for (std::size_t round = 0; round < rounds; ++round) only.resume();
        m.stop(rounds);
        m.expect_equal(world.resumes, rounds + 1, "resumes");
    };
}

auto in_order(std::size_t count, std::size_t stack_bytes, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        typename Peer::stacks stacks(stack_bytes);
        row<coroutine_of<Peer, plain>> row(count);
        for (std::size_t i = 0; i < count; ++i) {
            row.emplace(i, [&] { return make<Peer, plain>(stacks); });
            row[i].resume();
        }
        auto run = [&] {
            for (std::size_t i = 0; i < count; ++i) row[i].resume();
        };
        run();
        m.start();
        for (std::size_t round = 0; round < rounds; ++round) run();
        m.stop(count * rounds);
        m.expect_equal(world.resumes, count * (rounds + 2), "resumes");
    };
}

template <class Peer, std::size_t... Kind>
auto makers(std::index_sequence<Kind...>) {
    return std::array{&make<Peer, counting<Kind + 1>>...};
}

auto hetero(std::size_t count, std::size_t stack_bytes, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        const auto make_kind = makers<Peer>(std::make_index_sequence<16>{});
        const auto order = shuffled(count);
        typename Peer::stacks stacks(stack_bytes);
        row<coroutine_of<Peer, plain>> row(count);
        std::uint64_t weight = 0;
        for (std::size_t i = 0; i < count; ++i) {
            row.emplace(i, [&] { return make_kind[i % 16](stacks); });
            row[i].resume();
            weight += i % 16 + 1;
        }
        auto run = [&] {
            for (const std::uint32_t i : order) row[i].resume();
        };
        run();
        m.start();
        for (std::size_t round = 0; round < rounds; ++round) run();
        m.stop(count * rounds);
        m.expect_equal(world.resumes, weight * (rounds + 2), "weighted resumes");
    };
}

auto in_shuffled_order(std::size_t count, std::size_t stack_bytes, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        auto order = shuffled(count);
        order.insert(order.end(), order.begin(), order.begin() + prefetch_ahead);
        typename Peer::stacks stacks(stack_bytes);
        row<coroutine_of<Peer, plain>> row(count);
        for (std::size_t i = 0; i < count; ++i) {
            row.emplace(i, [&] { return make<Peer, plain>(stacks); });
            row[i].resume();
        }
        auto run = [&] {
            for (std::size_t k = 0; k < count; ++k) {
                if constexpr (Peer::prefetches) {
                    row[order[k + prefetch_ahead]].prefetch();
                }
                row[order[k]].resume();
            }
        };
        run();
        m.start();
        for (std::size_t round = 0; round < rounds; ++round) run();
        m.stop(count * rounds);
        m.expect_equal(world.resumes, count * (rounds + 2), "resumes");
    };
}

}  // namespace

void add_switch() {
    add("switch/1x16K", lists::coroutines(), alone(16 * KiB, 1'000'000));
    add("switch/1000x128K", lists::coroutines(), in_order(1000, 128 * KiB, 1000));
    add("switch/5000x128K", lists::coroutines(), in_order(5000, 128 * KiB, 100));
    add("switch/1000x2M", lists::coroutines(), in_order(1000, 2 * MiB, 1000));
    add("switch/30000x64K", lists::coroutines(), in_order(30000, 64 * KiB, 20));
    add("switch_hetero/1000x128K", lists::coroutines(), hetero(1000, 128 * KiB, 1000));
    add("switch_shuffled/30000x64K", lists::coroutines() + lists::no_prefetch,
        in_shuffled_order(30000, 64 * KiB, 20));
}

}  // namespace bench
