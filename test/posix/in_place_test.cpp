#include "weft/posix/detail/in_place.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "test/support/cpu_of_thread.hpp"
#include "weft/base/detail/atomic.hpp"

namespace {

using namespace weft::detail;

struct thing_of_c {
    unsigned state_;
    std::uint64_t room_[2];
};

weft::atomic<int> things_made{0};
struct thing {
    int value = 7;
    thing() { ++things_made; }
    explicit thing(int v) : value(v) { ++things_made; }
    ~thing() { --things_made; }
};

TEST(in_place, is_constructed_from_zeros_by_the_first_caller) {
    thing_of_c c{};
    things_made = 0;
    std::vector<std::thread> all;
    for (int i = 0; i < 4; ++i) all.emplace_back([&] { EXPECT_EQ(in_place<thing>(c)->value, 7); });
    for (std::thread& t : all) t.join();
    EXPECT_EQ(things_made, 1);
    destroy_in_place<thing>(c);
    EXPECT_EQ(things_made, 0);
    EXPECT_EQ(in_place<thing>(c), nullptr) << "it was destroyed";
}

std::atomic<bool> is_making{false};
struct slow_thing {
    slow_thing() {
        is_making = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
};

TEST(in_place, yields_to_the_thread_that_constructs) {
    thing_of_c c{};
    std::thread maker([&] { in_place<slow_thing>(c); });
    while (!is_making) std::this_thread::yield();
    const auto before = weft::testing::cpu_of_thread();
    EXPECT_NE(in_place<slow_thing>(c), nullptr);
    EXPECT_LT(weft::testing::cpu_of_thread() - before, std::chrono::milliseconds(100));
    maker.join();
}

TEST(in_place, is_constructed_explicitly_over_any_bytes) {
    thing_of_c c;
    std::memset(&c, 0xa5, sizeof c);
    make_in_place<thing>(c, 9);
    EXPECT_EQ(in_place<thing>(c)->value, 9);
    EXPECT_EQ(in_place<thing>(c), room_of<thing>(c));
    destroy_in_place<thing>(c);
    make_in_place<thing>(c);
    EXPECT_EQ(in_place<thing>(c)->value, 7);
    destroy_in_place<thing>(c);
}

}  // namespace
