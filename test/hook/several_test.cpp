#include "weft/hook/detail/several.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "test/support/allocations.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/hook.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/run/run.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

// No waiter can be notified of such a descriptor, so the system is polled.
TEST(several, waits_for_an_fd_without_memory_for_its_entry) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "no allocation can fail";
    run([] {
        auto s = testing::fd_pair::sockets();
        int number = 1000;  // no entry is allocated yet for it or its neighbours
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

// What waits for the end of a peer alone is woken by that end. To ask again and again would take a
// turn each time.
class several_descriptors : public testing::on_each_driver {};

TEST_P(several_descriptors, report_a_peers_shutdown_without_polling) {
    run([&] {
        for (const int family : {AF_UNIX, AF_INET}) {
            for (const int events : {POLLRDHUP, POLLRDHUP | POLLOUT, POLLRDHUP | POLLPRI}) {
                int p[2] = {-1, -1};
                if (family == AF_UNIX) {
                    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
                } else {
                    sockaddr_in at;
                    const testing::one_fd listens(testing::bound(SOCK_STREAM, at));
                    p[0] = ::socket(AF_INET, SOCK_STREAM, 0);
                    ASSERT_EQ(::connect(p[0], testing::as_address(at), sizeof at), 0);
                    p[1] = ::accept(listens.n, nullptr, nullptr);
                }
                const testing::fd_pair s(p[0], p[1]);
                char much[4096] = {};
                if ((events & POLLOUT) != 0)
                    while (::send(s.a, much, sizeof much, MSG_DONTWAIT) > 0) {
                    }
                const std::uint64_t before = loop().turn_count();
                fiber far([&] {
                    ::usleep(200'000);
                    ::send(s.b, "x", 1, 0);  // of no interest to it
                    ::usleep(200'000);
                    ::shutdown(s.b, SHUT_WR);
                });
                pollfd one = {s.a, static_cast<short>(events), 0};
                const auto begun = std::chrono::steady_clock::now();
                EXPECT_EQ(::poll(&one, 1, 5000), 1);
                const auto took = std::chrono::steady_clock::now() - begun;
                EXPECT_EQ(one.revents, POLLRDHUP);
                EXPECT_GE(took, 390ms);
                EXPECT_LE(took, 3s);
                EXPECT_LE(loop().turn_count() - before, 20u);
                far.join();
                EXPECT_EQ(::poll(&one, 1, 5000), 1);
            }
        }
    });
}

INSTANTIATE_ON_DRIVERS(several_descriptors);

}  // namespace
}  // namespace weft
