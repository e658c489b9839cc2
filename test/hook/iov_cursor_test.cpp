#include "weft/hook/detail/iov_cursor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace {

using weft::hook::iov_cursor;
using weft::hook::most_bytes;

TEST(iov_cursor, visits_each_byte_once_for_any_step_size) {
    char text[] = "abcdefghij";
    const iovec v[4] = {{text, 3}, {nullptr, 0}, {text + 3, 1}, {text + 4, 6}};
    for (std::size_t step = 1; step <= 10; ++step) {
        iov_cursor c(v, 4);
        EXPECT_EQ(c.bytes(), 10u);
        EXPECT_FALSE(c.has_moved());
        std::string seen;
        for (bool all = false; !all;) {
            std::size_t left = step;
            for (int i = 0; i < c.count() && left != 0; ++i) {
                const iovec& b = c.buffers()[i];
                const std::size_t n = std::min(left, b.iov_len);
                seen.append(static_cast<const char*>(b.iov_base), n);
                left -= n;
            }
            all = c.advance(step - left);
            EXPECT_TRUE(c.has_moved());
        }
        EXPECT_EQ(seen, text);
    }
}

TEST(iov_cursor, copies_the_next_bytes_from_any_position) {
    char text[] = "abcdefghij";
    const iovec v[4] = {{text, 3}, {nullptr, 0}, {text + 3, 1}, {text + 4, 6}};
    for (std::size_t done = 0; done != 10; ++done) {
        for (std::size_t most = 0; most != 12; ++most) {
            iov_cursor c(v, 4);
            c.advance(done);
            char to[16] = {};
            const std::size_t n = c.copy_to(to, most);
            EXPECT_EQ(n, std::min(most, 10 - done));
            EXPECT_EQ(to, std::string(text).substr(done, n));
            EXPECT_EQ(c.has_more_buffers(), done < 4);
            iovec all[4];
            c.copy_all_to(all);
            std::string left;
            for (std::size_t i = 0; i != c.all_count(); ++i)
                left.append(static_cast<const char*>(all[i].iov_base), all[i].iov_len);
            EXPECT_EQ(left, std::string(text).substr(done));
        }
    }
}

TEST(iov_cursor, is_done_at_the_systems_limit_for_one_call) {
    char c;
    const iovec v[] = {{&c, most_bytes - 1}, {&c, most_bytes}};
    iov_cursor whole(v, 2);
    EXPECT_EQ(whole.bytes(), most_bytes);
    EXPECT_FALSE(whole.advance(most_bytes - 1));
    EXPECT_TRUE(whole.advance(1));
}

TEST(iov_cursor, is_done_without_buffers) {
    iov_cursor c(nullptr, 0);
    EXPECT_EQ(c.bytes(), 0u);
    EXPECT_TRUE(c.advance(0));
    msghdr m{};
    c.put_into(m);
    EXPECT_EQ(m.msg_iovlen, 0u);
}

}  // namespace
