// Fibers of one thread: what a turn of the run queue costs, and a wake by a lock or a channel.
//
// yield: one turn of a fiber among many that yield in turn. yield_shuffled: the same with the run
// queue in an order that has nothing to do with where the stacks lie. mutex_handoff: two fibers
// that give up the processor while they hold the lock, so that the other comes to wait for it, and
// again when they have let go of it, so that the other gets it; one operation is one lock.
// channel_pingpong: there and back over two channels of no capacity. channel_1p1c: one item through
// a channel of 1024. spawn_join: a fiber of an empty function, from its making to the return of
// join, when others have used its memory before.
//
// A subject is timed by the fiber that is first in the queue: what the others do in its turns is in
// its time, what they do before its first and after its last is not.

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "bench/escape.hpp"
#include "bench/harness.hpp"
#include "bench/peers/boost_fiber.hpp"
#include "bench/peers/weft_fiber.hpp"
#include "bench/subjects.hpp"

namespace bench {

namespace {

constexpr peers<weft_fiber, weft_fiber_shared_fp, boost_fiber> fiber_peers{};
constexpr std::size_t stack_bytes = 64 * 1024;

std::vector<std::size_t> shuffled(std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937 random(20240229);  // fixed: every peer and every run has the same order
    for (std::size_t i = count - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    return order;
}

// What each of the yielding does; `lead` is the first in the queue.
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

auto yields(std::size_t count, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        typename Peer::stage stage(stack_bytes);
        std::uint64_t turns = 0;
        for (std::size_t i = 0; i < count; ++i)
            stage.spawn([&, i] { take_turns<Peer>(count, rounds, i == 0, turns, m); });
        stage.run();
        m.expect_equal(turns, count * rounds, "turns");
    };
}

// Each waits at a gate of its own; they are opened in a shuffled order, which is from then on the
// order of the queue.
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
        int holder = 0;
        std::uint64_t handoffs = 0;
        const auto body = [&](int self) {
            for (std::size_t round = 0; round < rounds; ++round) {
                mutex.lock();
                handoffs += holder != self;
                holder = self;
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
    add("yield/2", fiber_peers, yields(2, 500'000));
    add("yield/1000", fiber_peers, yields(1000, 1000));
    add("yield_shuffled/30000", fiber_peers, shuffled_yields(30000, 20));
    add("mutex_handoff/2", fiber_peers, handoffs(200'000));
    add("channel_pingpong/0", fiber_peers, ping_pong(200'000));
    add("channel_1p1c/1024", fiber_peers, one_to_one(1024, 2'000'000));
    add("spawn_join/1", fiber_peers, spawns(200'000));
}

}  // namespace bench
