// What the futures of the tests carry, and how they are run.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/future/promise.hpp"
#include "weft/sched/virtual_loop.hpp"

namespace future_tests {

using namespace std::chrono_literals;
using weft::future;
using weft::make_ready_future;
using weft::plain;
using weft::promise;
using weft::stop_reason;
using weft::testing::virtual_loop;

// Cannot be copied, and records whether it was moved from.
struct moving {
    std::unique_ptr<int> n;
    explicit moving(int i) : n(std::make_unique<int>(i)) {}
};

// Counts the live instances, and the copies.
struct tracked {
    static inline int living = 0;
    static inline int copies = 0;
    int value;
    explicit tracked(int v) : value(v) { ++living; }
    tracked(const tracked& o) : value(o.value) { ++living, ++copies; }
    tracked(tracked&& o) noexcept : value(std::exchange(o.value, -1)) { ++living; }
    tracked& operator=(const tracked&) = delete;
    ~tracked() { --living; }
};

// Runs f in a turn of the loop, and then all that comes of it, until nothing is left.
template <class F>
void run(virtual_loop& l, F f) {
    l.loop().post(std::move(f));
    l.run();
}

}  // namespace future_tests
