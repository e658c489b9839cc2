#include "weft/io/owned_number.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace {

using weft::owned_number;

int null_device() { return ::open("/dev/null", O_RDWR | O_CLOEXEC); }
bool still_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST(owned_number, is_closed_by_its_destructor_unless_released) {
    const int kept = null_device();
    int closed;
    {
        owned_number a(null_device());
        owned_number b(kept);
        closed = a.get();
        EXPECT_TRUE(a);
        EXPECT_EQ(b.release(), kept);
        EXPECT_FALSE(b);
    }
    EXPECT_FALSE(still_open(closed));
    EXPECT_TRUE(still_open(kept));
    ::close(kept);
}

TEST(owned_number, has_one_owner_after_a_move) {
    owned_number a(null_device());
    owned_number b(null_device());
    const int first = a.get();
    const int second = b.get();
    b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_EQ(b.get(), first);
    EXPECT_FALSE(still_open(second));
    owned_number& self = b;
    b = std::move(self);
    EXPECT_TRUE(still_open(first));
    const owned_number c(std::move(b));
    EXPECT_EQ(c.get(), first);
    EXPECT_TRUE(still_open(first));
}

}  // namespace
