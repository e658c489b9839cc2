// The driver of each loop and each worker that these tests make without naming one:
// WEFT_TEST_DRIVER=epoll, io_uring or poll; where it is unset or empty, their own futex driver.
// Replaces weft::detail::driver_of_a_loop by being linked.
//
// Where the system refuses the requested driver, the program reports that and ends with 77, which
// CTest shows as a skipped test.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "weft/io/driver_uring.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/sched/driver_futex.hpp"
#include "weft/sched/loop.hpp"

namespace {

weft::io_kind kind_asked_for() {
    const char* const asked = std::getenv("WEFT_TEST_DRIVER");
    const std::string_view name = asked != nullptr ? asked : "";
    if (name.empty()) return weft::io_kind::automatic;  // here: none of them
    if (name == "epoll") return weft::io_kind::epoll;
    if (name == "poll") return weft::io_kind::poll;
    if (name == "kqueue") return weft::io_kind::kqueue;
    const char* why = "there is no such driver";
    if (name == "io_uring" && weft::make_driver_uring(&why) != nullptr)
        return weft::io_kind::io_uring;
    std::printf("SKIPPED: WEFT_TEST_DRIVER=%s: %s\n", asked, why);
    std::fflush(stdout);
    ::_exit(name == "io_uring" ? 77 : 2);
}

// Otherwise the rest would prove nothing about the driver.
TEST(test_driver, drives_every_loop) {
    const char* const asked = std::getenv("WEFT_TEST_DRIVER");
    weft::loop l;
    const weft::io_driver* const io = l.driven_by()->io();
    if (asked == nullptr || *asked == '\0') {
        EXPECT_EQ(io, nullptr);
    } else {
        ASSERT_NE(io, nullptr);
        EXPECT_STREQ(io->name(), asked);
    }
}

}  // namespace

std::unique_ptr<weft::driver> weft::detail::driver_of_a_loop() {
    static const io_kind kind = kind_asked_for();
    if (kind == io_kind::automatic) return std::make_unique<driver_futex>();
    return make_io_driver(kind);
}
