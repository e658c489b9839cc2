#include "weft/io/tls/detail/tls_rest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <utility>

#include "weft/io/stream.hpp"

namespace {

using weft::bytes_of;
using weft::detail::tls_rest;

std::string contents_of_first(const tls_rest& r) {
    return {reinterpret_cast<const char*>(r.first_contents()), r.first().bytes};
}

TEST(tls_rest, keeps_bytes_in_order) {
    tls_rest r;
    EXPECT_TRUE(r.empty());
    EXPECT_TRUE(r.append(bytes_of("hello").data(), 5));
    r.drop(2);
    EXPECT_TRUE(r.append(bytes_of(", you").data(), 5));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(r.data()), r.size()), "llo, you");
    r.drop(8);
    EXPECT_TRUE(r.empty());
}

TEST(tls_rest, a_partly_dropped_piece_keeps_its_type) {
    tls_rest r;
    EXPECT_TRUE(r.append(23, bytes_of("hello").data(), 5));
    EXPECT_TRUE(r.append(21, bytes_of("cn").data(), 2));
    r.drop_of_first(1);
    r.drop_of_first(2);
    EXPECT_EQ(r.first().type, 23);
    EXPECT_EQ(contents_of_first(r), "lo");
    r.drop_of_first(2);
    EXPECT_EQ(r.first().type, 21);
    EXPECT_EQ(contents_of_first(r), "cn");
    r.drop_of_first(1);
    EXPECT_EQ(r.first().type, 21);
    r.drop_of_first(1);
    EXPECT_TRUE(r.empty());
}

TEST(tls_rest, returns_the_pieces_it_was_given) {
    std::mt19937 random(7);
    tls_rest r;
    std::deque<std::pair<unsigned char, std::string>> model;
    for (int i = 0; i < 20'000; ++i) {
        // A while it grows, a while it falls.
        if (random() % 100 < (i / 500 % 2 == 0 ? 60u : 40u)) {
            std::string s(1 + random() % 300, 0);
            std::generate(s.begin(), s.end(), [&] { return static_cast<char>(random()); });
            const auto type = static_cast<unsigned char>(21 + random() % 3);
            ASSERT_TRUE(r.append(type, bytes_of(s).data(), s.size()));
            model.emplace_back(type, std::move(s));
        } else if (!model.empty()) {
            auto& [type, s] = model.front();
            ASSERT_EQ(r.first().type, type);
            ASSERT_EQ(contents_of_first(r), s);
            const std::size_t gone = 1 + random() % s.size();
            r.drop_of_first(gone);
            s.erase(0, gone);
            if (s.empty()) model.pop_front();
        }
        ASSERT_EQ(r.empty(), model.empty());
    }
}

}  // namespace
