#include "bench/net/bounce.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace bench::net {

namespace {

constexpr int batches = 201;
constexpr int trips = 200;  // in a batch

// The cache line: odd while the ball is on the other side. Each thread waits for its own parity and
// then hits the ball back.
struct alignas(128) line {
    std::atomic<int> ball{0};
};

}  // namespace

bool pin_to_core(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(core), &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

double bounce_ns(int one_core, int other_core) {
    if (!pin_to_core(one_core)) return -1;
    line shared;
    std::atomic<int> pinned{0};  // set by the other thread: 1 it is pinned, -1 it cannot be
    std::thread other([&] {
        const bool there = pin_to_core(other_core);
        pinned.store(there ? 1 : -1);
        for (int turn = 1; there && turn < 2 * batches * trips; turn += 2) {
            while (shared.ball.load(std::memory_order_acquire) != turn) {  // with hit()'s store
            }
            shared.ball.store(turn + 1, std::memory_order_release);  // with hit()'s load
        }
    });
    while (pinned.load() == 0) std::this_thread::yield();
    int turn = 0;
    const auto hit = [&] {
        shared.ball.store(turn + 1, std::memory_order_release);  // with the other's load
        turn += 2;
        while (shared.ball.load(std::memory_order_acquire) != turn) {  // with the other's store
        }
    };
    std::array<double, batches> took{};
    for (std::size_t b = 0; pinned.load() > 0 && b < took.size(); ++b) {
        const auto began = std::chrono::steady_clock::now();
        for (int i = 0; i < trips; ++i) hit();
        took[b] = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began)
                      .count() /
                  trips;
    }
    other.join();
    std::nth_element(took.begin(), took.begin() + batches / 2, took.end());
    return pinned.load() > 0 ? took[batches / 2] : -1;
}

}  // namespace bench::net
