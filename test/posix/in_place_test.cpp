#include "weft/posix/in_place.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "weft/base/atomic.hpp"

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

TEST(in_place, is_made_of_zeros_by_the_first_who_comes) {
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

TEST(in_place, is_made_of_anything_by_who_says_so) {
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
