// manager_options, manager_stats: the limits of a task_manager, and what it counts.
//
// Design: aggregates: the constructor of the manager reads the options once, and stats() returns a
// snapshot.
//
// Limits: the executor of `timers` outlives the manager. With neither `timers` nor a caller of
// tick() no timeout ends a task.
//
//   weft::task_manager<> m({.on = loop, .timers = &loop, .max_live_count = 10'000});
//   log(m.stats().refused_count);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/base/clock.hpp"
#include "weft/wait/scheduler.hpp"

namespace weft {

class executor;

// As a limit: none.
inline constexpr std::size_t unlimited = ~std::size_t{0};

struct manager_options {
    scheduler_ref on = {};       // for tasks without one; none: the executor that spawns
    executor* timers = nullptr;  // its timers end late tasks; null: tick()'s caller does
    // The time from which durations count until the first tick.
    time_point start = steady_now();
    duration resolution = std::chrono::milliseconds(1);  // of deadlines, rounded up to
    // A late task is requested to stop, and killed if it is still live after this.
    duration grace = std::chrono::seconds(1);
    std::size_t max_live_count = unlimited;  // at most so many live tasks; more are refused by name
    std::size_t shard_count = 8;             // of the ids, a power of two
};

struct manager_stats {
    std::size_t live_count = 0;
    std::size_t deadline_count = 0;  // live tasks that have a deadline
    std::uint64_t done_count = 0;
    std::uint64_t cancelled_count = 0;
    std::uint64_t killed_count = 0;
    std::uint64_t timed_out_count = 0;
    std::uint64_t refused_count = 0;  // at the limit
    std::size_t awaited_reply_count = 0;
    std::uint64_t late_reply_count = 0;     // without a waiter for them, or not any more
    std::uint64_t type_mismatch_count = 0;  // values of another type than the waiter's
};

}  // namespace weft
