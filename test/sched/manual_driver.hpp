// manual_driver: a driver with a clock that stands still until the loop sleeps. The driver records
// the calls of the loop.
#pragma once

#include <utility>
#include <vector>

#include "weft/sched/driver.hpp"

namespace weft::testing {

class manual_driver final : public driver {
public:
    struct record {
        std::vector<time_point> waits;
        int wakes = 0;
        time_point now{};
        bool real = false;  // what keeps_real_time() returns
    };
    explicit manual_driver(record& r) noexcept : record_(r) {}

    bool wait(time_point until) noexcept override {
        record_.waits.push_back(until);
        if (std::exchange(woken_, false)) return true;
        if (until == never) return false;
        if (until > record_.now) record_.now = until;
        return true;
    }
    void wake() noexcept override {
        ++record_.wakes;
        woken_ = true;
    }
    time_point now() const noexcept override { return record_.now; }
    bool keeps_real_time() const noexcept override { return record_.real; }
    int native_handle() noexcept override { return -1; }

private:
    record& record_;
    bool woken_ = false;
};

}  // namespace weft::testing
