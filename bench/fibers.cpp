// Fibers of one thread: what a turn of the run queue costs, and a wake by a lock or a channel.
//
// yield: one turn of a fiber among many that yield in turn. yield_shuffled: the same with the run
// queue in an order that is independent of the stacks' addresses. mutex_handoff: two fibers that
// yield while they hold the lock, so that the other fiber comes to wait for the lock, and again
// after the unlock, so that the other fiber gets the lock; one operation is one lock.
// channel_pingpong: there and back over two channels of no capacity. channel_1p1c: one item through
// a channel of 1024. spawn_join: a fiber of an empty function, from its creation to the return of
// join, on memory that earlier fibers have used.
//
// create, switch and skynet are the subjects of coroutines, for fibers: a fiber that is spawned and
// has not run, one turn, and a tree whose parents spawn and join their children.
//
// A subject is timed by the fiber that is first in the queue. The work of the other fibers between
// its turns counts; their work before its first turn and after its last does not.

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "bench/bodies.hpp"
#include "bench/escape.hpp"
#include "bench/lists.hpp"
#include "bench/subjects.hpp"

#ifndef WEFT_BENCH_CHECKOUT
#include "bench/peers/boost_fiber.hpp"
#include "bench/peers/weft_fiber.hpp"
#endif

namespace bench {

namespace {

#ifndef WEFT_BENCH_CHECKOUT
struct lists : no_peers<lists> {
    static constexpr peers<weft_fiber, weft_fiber_shared_fp, boost_fiber> fibers{};
    static constexpr auto yielding = fibers;
};
#endif
constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t stack_bytes = 64 * KiB;

std::vector<std::size_t> shuffled(std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937 random(20240229);  // fixed: every peer and every run has the same order
    for (std::size_t i = count - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    return order;
}

// The body of each yielding fiber; `lead` is the first in the queue.
template <class Peer>
void take_turns(std::size_t count, std::size_t rounds, bool lead, std::uint64_t& turns, meter& m) {
    Peer::yield();
    if (lead) m.start();
    for (std::size_t round = 0; round < rounds; ++round) {
        ++turns;
        Peer::yield();
    }
    if (lead) m.stop(count * rounds);
}

auto yields(std::size_t count, std::size_t rounds, std::size_t bytes = stack_bytes) {
    return [=]<class Peer>(Peer, meter& m) {
        typename Peer::stage stage(bytes);
        std::uint64_t turns = 0;
        for (std::size_t i = 0; i < count; ++i)
            stage.spawn([&, i] { take_turns<Peer>(count, rounds, i == 0, turns, m); });
        stage.run();
        m.expect_equal(turns, count * rounds, "turns");
    };
}

// On memory that the process never touched; one fiber was spawned before, and has ended.
auto spawned(std::size_t count, std::size_t bytes) {
    return [=]<class Peer>(Peer, meter& m) {
        typename Peer::stage stage(bytes);
        std::uint64_t ran = 0;
        stage.spawn([&] {
            stage.spawn_and_join([&] { ++ran; });
            m.start();
            for (std::size_t i = 0; i < count; ++i) stage.spawn([&] { ++ran; });
            m.stop(count);
        });
        stage.run();
        m.expect_equal(ran, count + 1, "fibers that ran");
    };
}

template <class Stage>
std::uint64_t sum_of(Stage& stage, std::uint64_t number, std::uint64_t leaves) {
    if (leaves == 1) return number;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 10; ++i) {
        const std::uint64_t part = leaves / 10;
        stage.spawn_and_join([&] { sum += sum_of(stage, number + i * part, part); });
    }
    return sum;
}

auto skynet() {
    return []<class Peer>(Peer, meter& m) {
        typename Peer::stage stage(16 * KiB);
        std::uint64_t sum = 0;
        stage.spawn([&] {
            m.start();
            sum = sum_of(stage, 0, skynet_leaves);
            m.stop(1);
        });
        stage.run();
        m.expect_equal(sum, skynet_sum, "sum");
    };
}

// Each fiber waits at a gate of its own; the gates are opened in a shuffled order, which is from
// then on the order of the queue.
auto shuffled_yields(std::size_t count, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        typename Peer::stage stage(stack_bytes);
        const auto order = shuffled(count);
        const auto gates = std::make_unique<typename Peer::mutex[]>(count);
        std::uint64_t turns = 0;
        stage.spawn([&] {
            for (std::size_t i = 0; i < count; ++i) gates[i].lock();
            for (int i = 0; i < 3; ++i) Peer::yield();  // all have come to their gates
            for (const std::size_t i : order) gates[i].unlock();
        });
        for (std::size_t i = 0; i < count; ++i) {
            stage.spawn([&, i] {
                Peer::yield();
                gates[i].lock();
                gates[i].unlock();
                take_turns<Peer>(count, rounds, i == order[0], turns, m);
            });
        }
        stage.run();
        m.expect_equal(turns, count * rounds, "turns");
    };
}

auto handoffs(std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        typename Peer::stage stage(stack_bytes);
        typename Peer::mutex mutex;
        int owner = 0;
        std::uint64_t handoffs = 0;
        const auto body = [&](int self) {
            for (std::size_t round = 0; round < rounds; ++round) {
                mutex.lock();
                handoffs += owner != self;
                owner = self;
                Peer::yield();
                mutex.unlock();
                Peer::yield();
            }
        };
        stage.spawn([&] {
            m.start();
            body(1);
            m.stop(2 * rounds);
        });
        stage.spawn([&] { body(2); });
        stage.run();
        m.expect_equal(handoffs, 2 * rounds, "hand-offs");
    };
}

auto ping_pong(std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        typename Peer::stage stage(stack_bytes);
        typename Peer::template rendezvous<std::uint64_t> there(0), back(0);
        std::uint64_t sum = 0;
        stage.spawn([&] {
            m.start();
            for (std::size_t round = 0; round < rounds; ++round) {
                there.send(round);
                sum += back.recv();
            }
            m.stop(rounds);
        });
        stage.spawn([&] {
            for (std::size_t round = 0; round < rounds; ++round) back.send(there.recv() + 1);
        });
        stage.run();
        m.expect_equal(sum, rounds * (rounds + 1) / 2, "sum");
    };
}

auto one_to_one(std::size_t capacity, std::size_t items) {
    return [=]<class Peer>(Peer, meter& m) {
        typename Peer::stage stage(stack_bytes);
        typename Peer::template channel<std::uint64_t> channel(capacity);
        std::uint64_t sum = 0;
        stage.spawn([&] {
            m.start();
            for (std::size_t i = 0; i < items; ++i) channel.send(i);
            channel.close();
        });
        stage.spawn([&] {
            channel.drain([&](std::uint64_t i) { sum += i; });
            m.stop(items);
        });
        stage.run();
        m.expect_equal(sum, items * (items - 1) / 2, "sum");
    };
}

auto spawns(std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        typename Peer::stage stage(stack_bytes);
        std::uint64_t ran = 0;
        stage.spawn([&] {
            const auto spawn = [&] { stage.spawn_and_join([&] { escape(&++ran); }); };
            for (std::size_t round = 0; round < 1000; ++round) spawn();
            m.start();
            for (std::size_t round = 0; round < rounds; ++round) spawn();
            m.stop(rounds);
        });
        stage.run();
        m.expect_equal(ran, rounds + 1000, "fibers that ran");
    };
}

}  // namespace

void add_fibers() {
    add("yield/2", lists::yielding, yields(2, 500'000));
    add("yield/1000", lists::yielding, yields(1000, 1000));
    add("yield_shuffled/30000", lists::fibers, shuffled_yields(30000, 20));
    add("mutex_handoff/2", lists::fibers, handoffs(200'000));
    add("channel_pingpong/0", lists::fibers, ping_pong(200'000));
    add("channel_1p1c/1024", lists::fibers, one_to_one(1024, 2'000'000));
    add("spawn_join/1", lists::yielding, spawns(200'000));

    const plan several{.children = 9};
    add("create/1000x128K", lists::yielding, spawned(1000, 128 * KiB), several);
    add("create/5000x128K", lists::yielding, spawned(5000, 128 * KiB));
    add("create/1000x2M", lists::yielding, spawned(1000, 2 * MiB), several);
    add("create/30000x64K", lists::yielding, spawned(30'000, 64 * KiB));
    add("switch/1x16K", lists::yielding, yields(1, 1'000'000, 16 * KiB));
    add("switch/1000x128K", lists::yielding, yields(1000, 1000, 128 * KiB));
    add("switch/5000x128K", lists::yielding, yields(5000, 100, 128 * KiB));
    add("switch/1000x2M", lists::yielding, yields(1000, 1000, 2 * MiB));
    add("switch/30000x64K", lists::yielding, yields(30'000, 20, 64 * KiB));
    add("skynet/1M", lists::yielding, skynet(), {.unit = benchmark::kMillisecond});
}

}  // namespace bench
