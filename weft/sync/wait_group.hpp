// wait_group: waits until all counted work is done, as in Go.
//
// Design: a latch counts down once; the count of a wait_group may also grow during a wait, and the
// wait_group can be used again.
//
// Limits: add() is called before the counted work starts, and from zero only when all earlier waits
// have returned. A count below zero aborts. The wait_group outlives its waiters.
//
//   weft::wait_group g;
//   for (auto& job : jobs) { g.add(); weft::spawn([&] { job(); g.done(); }).detach(); }
//   g.wait();
#pragma once

#include <cstddef>

#include "weft/sync/detail/countdown.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class wait_group {
public:
    explicit wait_group(std::size_t count = 0,
                        std::source_location caller = std::source_location::current()) noexcept
        : gate_(count, "a wait_group", caller) {}
    wait_group(const wait_group&) = delete;
    wait_group& operator=(const wait_group&) = delete;

    // Call before the counted work begins. From zero, call only when all earlier wait() calls have
    // returned.
    void add(std::size_t n = 1,
             std::source_location caller = std::source_location::current()) noexcept {
        gate_.add(n, caller);
    }
    // Aborts if the count falls below zero.
    void done(std::source_location caller = std::source_location::current()) noexcept {
        gate_.remove(1, caller);
    }
    std::size_t count() const noexcept { return gate_.bars(); }

    bool try_wait() const noexcept { return gate_.is_open(); }
    // Throws stopped.
    void wait(std::source_location caller = std::source_location::current()) {
        if (!try_wait()) await(async_wait(), caller);
    }
    // True: the count was zero. False: the limit was reached first. Throws stopped.
    [[nodiscard]] bool wait(time_limit limit,
                            std::source_location caller = std::source_location::current()) {
        return await(async_wait(limit), caller);
    }

    detail::countdown_operation async_wait() noexcept { return detail::countdown_operation(gate_); }
    detail::timed_gate_operation async_wait(time_limit limit) noexcept {
        return detail::timed_gate_operation(limit, gate_);
    }

private:
    detail::countdown gate_;
};

}  // namespace weft
