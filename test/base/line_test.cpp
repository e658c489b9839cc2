// line: text without allocation, written in one system call.
#include "weft/base/detail/line.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "weft/base/assert.hpp"

#if WEFT_LINUX
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace {

using weft::detail::line;

std::string_view view(const line& l) { return {l.data(), l.size()}; }

TEST(line, starts_empty) { EXPECT_EQ(view(line{}), ""); }

TEST(line, appends_text_and_integers_in_order) {
    line l;
    l.text("weft: ").number(7).text(" at ").hex(0x40).newline();
    EXPECT_EQ(view(l), "weft: 7 at 0x40\n");
}

TEST(line, formats_integers_from_zero_to_the_largest) {
    constexpr auto largest = std::numeric_limits<std::uint64_t>::max();
    line l;
    l.number(0).text(" ").number(largest).text(" ").hex(0).text(" ").hex(largest);
    EXPECT_EQ(view(l), "0 18446744073709551615 0x0 0xffffffffffffffff");
}

TEST(line, treats_null_as_empty_text) {
    line l;
    l.text("a").text(nullptr).text("b");
    EXPECT_EQ(view(l), "ab");
}

TEST(line, names_an_agent_by_its_known_fields) {
    const auto named = [](const weft::agent_info& p) { return std::string(view(line{}.agent(p))); };
    EXPECT_EQ(named({"fiber", 7, "login"}), "fiber 7 \"login\"");
    EXPECT_EQ(named({"fiber", 7, ""}), "fiber 7");
    EXPECT_EQ(named({"fiber", 7}), "fiber 7");
    EXPECT_EQ(named({"a coroutine", 0}), "a coroutine") << "it has no number";
    EXPECT_EQ(named({"a coroutine"}), "a coroutine") << "and nobody has said one";
    EXPECT_EQ(named({}), "");
}

TEST(line, truncates_what_does_not_fit) {
    const std::string ten(10, 'x');
    line l;
    for (int i = 0; i < 100; ++i) l.text(ten.c_str());
    const std::size_t capacity = l.size();
    EXPECT_GE(capacity, 256U);
    EXPECT_LT(capacity, 1000U);
    l.number(5).newline();
    EXPECT_EQ(view(l), std::string(capacity, 'x'));
    EXPECT_EQ(l.terminate().data(), std::string(capacity - 1, 'x')) << "the last makes room";
}

TEST(line, is_a_c_string_when_terminated) {
    line l;
    for (std::size_t n = 1; n < 4; ++n)
        EXPECT_EQ(l.text("a").terminate().data(), std::string(n, 'a'));
}

#if WEFT_LINUX  // Windows has neither pipes of packets nor a limit of a file's size
TEST(line, write_uses_one_system_call) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_DIRECT | O_NONBLOCK), 0);  // in packet mode one read is one write
    line{}.text("one ").text("packet").newline().write(ends[1]);
    char got[64];
    const ssize_t n = read(ends[0], got, sizeof got);
    ASSERT_GT(n, 0);
    EXPECT_EQ(std::string_view(got, static_cast<std::size_t>(n)), "one packet\n");
    close(ends[0]);
    close(ends[1]);
}

// The file takes one byte, and signals when it is asked to take another.
TEST(line_death, write_continues_after_a_partial_write) {
    const auto child = [] {
        std::FILE* const file = std::tmpfile();
        constexpr ::rlimit one_byte{1, 1};
        if (file == nullptr || ::setrlimit(RLIMIT_FSIZE, &one_byte) != 0) std::_Exit(5);
        std::signal(SIGXFSZ, [](int) { std::_Exit(3); });
        line{}.text("three").write(::fileno(file));
        std::_Exit(4);
    };
    EXPECT_EXIT(child(), ::testing::ExitedWithCode(3), "");
}
#endif

TEST(line, write_preserves_errno_and_tolerates_a_closed_fd) {
    errno = 4711;
    line{}.text("to nobody").write(-1);
    EXPECT_EQ(errno, 4711);
}

}  // namespace
