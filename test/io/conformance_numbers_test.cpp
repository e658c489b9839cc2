// The laws of a descriptor that is not weft's, for any kind and any count of waiters.

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class foreign_fd : public on_each_way {};
INSTANTIATE_ON_WAYS(foreign_fd);

TEST_P(foreign_fd, can_be_waited_for_by_a_reader_and_a_writer) {
    int n[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, n), 0);
    plain_fd near(n[0]);
    plain_fd far(n[1]);
    const std::string b(4096, 'x');
    std::size_t filled = 0;
    for (::ssize_t k; (k = ::write(near, b.data(), b.size())) > 0;)
        filled += static_cast<std::size_t>(k);
    std::atomic<int> next{0};
    std::error_code errors[2];
    std::atomic<int> ready{0};
    crew both(way(), 2, [&](auto wait) -> task<> {
        const int i = next++;
        const fd_watch w(near);
        const auto r = co_await wait(w.async_wait(i == 0 ? fd_events::read : fd_events::write));
        errors[i] = r.error();
        ++ready;
    });
    both.asleep();
    send_plainly(far, "x");
    while (ready != 1 && !both.has_ended()) std::this_thread::yield();
    both.asleep();
    std::string all(filled, 0);
    while (filled != 0) {
        const ::ssize_t k = ::read(far, all.data(), filled);
        if (k <= 0) break;
        filled -= static_cast<std::size_t>(k);
    }
    both.join();
    EXPECT_FALSE(errors[0]) << errors[0].message();
    EXPECT_FALSE(errors[1]) << errors[1].message();
}

TEST_P(foreign_fd, has_a_second_watch_that_outlives_the_first) {
    int n[2];
    ASSERT_EQ(::pipe2(n, O_CLOEXEC | O_NONBLOCK), 0);
    plain_fd near(n[0]);
    plain_fd far(n[1]);
    std::error_code error;
    auto first = std::make_unique<fd_watch>(near);
    const fd_watch second(near);
    crew agent(way(), [&](auto wait) -> task<> {
        const auto r = co_await wait(second.async_wait(fd_events::read));
        error = r.error();
    });
    agent.asleep();
    first.reset();
    EXPECT_EQ(::write(far, "x", 1), 1);
    agent.join();
    EXPECT_FALSE(error) << error.message();
}

TEST_P(foreign_fd, that_is_not_open_is_an_error) {
    for (const int number : {-1, 9999}) {
        std::error_code error;
        crew agent(way(), [&](auto wait) -> task<> {
            const fd_watch w(number);
            const auto soon = after(now(), 200ms);
            const auto r = co_await wait(w.async_wait(fd_events::read, soon));
            error = r.error();
        });
        agent.join();
        EXPECT_EQ(error, std::errc::bad_file_descriptor) << number << ": " << error.message();
    }
}

// A file is always ready.
TEST_P(foreign_fd, of_a_file_is_read_like_a_pipe_to_its_end) {
    std::string path = ::testing::TempDir() + "weft.file.XXXXXX";
    const int number = ::mkstemp(path.data());
    ::unlink(path.c_str());
    EXPECT_EQ(::write(number, "text", 4), 4);
    ::lseek(number, 0, SEEK_SET);
    auto in = pipe_reader::adopt(number);
    ASSERT_TRUE(in);
    std::string got;
    std::error_code error;
    crew reader(way(), [&](auto wait) -> task<> {
        std::string b(64, 0);
        for (;;) {
            const auto k = co_await wait(in->async_read(room(b)));
            error = k.error();
            if (k.value_or(0) == 0) break;
            got.append(b, 0, *k);
        }
    });
    reader.join();
    EXPECT_EQ(got, "text");
    EXPECT_FALSE(error) << error.message();
}

}  // namespace
}  // namespace weft::testing
