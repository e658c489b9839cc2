#include "weft/hook/several.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "test/hook/suite.hpp"
#include "test/support/allocations.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/hook.hpp"
#include "weft/io/descriptor.hpp"
#include "weft/run/run.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

// Nobody can be told of such a descriptor, so that the system is asked again.
TEST(several, waits_for_a_descriptor_that_there_is_no_memory_to_know) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "no allocation can fail";
    run([] {
        auto s = testing::fd_pair::sockets();
        int number = 1000;  // of which there is no memory yet, nor of its neighbours
        while (detail::find_entry(number) != nullptr && number > 100) number -= 100;
        ASSERT_EQ(::dup2(s.a, number), number);
        const fiber writer([&] { EXPECT_EQ(::write(s.b, "x", 1), 1); });
        pollfd p = {number, POLLIN, 0};
        int n = -2;
        try {
            const timeout_scope limit(10s);
            const testing::allocation_fails next(1);
            n = ::poll(&p, 1, -1);
        } catch (const stopped&) {
        }
        EXPECT_EQ(n, 1);
        ::close(number);
    });
}

}  // namespace
}  // namespace weft
