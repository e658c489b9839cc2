// outside: whether a loop takes a wait for one that another thread may end, or for a deadlock.
//
//   EXPECT_TRUE(weft::testing::waits_for_outside([&] { f.wait(); }));
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/driver.hpp"
#include "weft/sched/loop.hpp"

namespace weft::testing {

// Its clock jumps, and a wait that would sleep for ever calls a function instead. The end of each
// wait is recorded in `waits`, where there is one.
class jumping_driver final : public driver {
public:
    jumping_driver(std::vector<time_point>* waits, std::function<void()> sleeps)
        : waits_(waits), sleeps_(std::move(sleeps)) {}

    bool wait(time_point until) noexcept override {
        if (std::exchange(woken_, false)) return true;
        if (waits_ != nullptr) waits_->push_back(until);
        if (until == never)
            sleeps_();
        else
            now_ = std::max(now_, until);
        return true;
    }
    void wake() noexcept override { woken_ = true; }
    time_point now() const noexcept override { return now_; }
    bool keeps_real_time() const noexcept override { return false; }
    int native_handle() noexcept override { return -1; }

private:
    std::vector<time_point>* const waits_;
    std::function<void()> sleeps_;
    time_point now_{};
    bool woken_ = false;
};

// Runs a loop with one fiber in it, which waits and is stopped in the end. False: the loop has
// reported a deadlock.
template <class F>
bool waits_for_outside(F waits) {
    static bool reported;
    reported = false;
    loop* of = nullptr;
    loop l(std::make_unique<jumping_driver>(nullptr, [&] { of->stop(); }));
    of = &l;
    l.on_deadlock([](loop& where) {
        reported = true;
        where.stop();
    });
    fiber f(std::move(waits), {.on = l});
    l.run();
    f.request_stop();
    l.run_until_idle();
    static_cast<void>(f.join());
    return !reported;
}

}  // namespace weft::testing
