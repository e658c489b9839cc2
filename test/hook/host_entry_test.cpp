#include "weft/hook/detail/host_entry.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

using namespace weft::hook;

TEST(host_entry, is_copied_deeply) {
    char name[] = "host.example";
    char alias[] = "h";
    char one[4] = {127, 0, 0, 1};
    char two[4] = {10, 0, 0, 2};
    char* aliases[] = {alias, nullptr};
    char* addresses[] = {one, two, nullptr};
    const hostent from = {name, aliases, AF_INET, 4, addresses};
    const std::size_t enough = host_bytes(from);
    for (std::size_t off = 0; off < 8; ++off) {
        std::vector<char> room(enough + 8);
        hostent into{};
        ASSERT_TRUE(copy_host(from, into, room.data() + off, enough));
        EXPECT_STREQ(into.h_name, name);
        EXPECT_NE(into.h_name, from.h_name);
        EXPECT_STREQ(into.h_aliases[0], alias);
        EXPECT_EQ(into.h_aliases[1], nullptr);
        EXPECT_EQ(std::memcmp(into.h_addr_list[1], two, 4), 0);
        EXPECT_EQ(into.h_addr_list[2], nullptr);
        EXPECT_EQ(into.h_length, 4);
    }
}

TEST(host_entry, reports_a_buffer_that_is_too_small) {
    char name[] = "host.example";
    char one[4] = {127, 0, 0, 1};
    char* aliases[] = {nullptr};
    char* addresses[] = {one, nullptr};
    const hostent from = {name, aliases, AF_INET, 4, addresses};
    alignas(8) char room[256];
    hostent into{};
    std::size_t least = 0;
    while (!copy_host(from, into, room, least)) ++least;
    EXPECT_LE(least, host_bytes(from));
    EXPECT_GT(least, sizeof name + sizeof one);
}

}  // namespace
