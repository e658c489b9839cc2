#include "weft/io/detail/child_exit_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

class child_exit : public ::testing::TestWithParam<weft::result<int> (*)(::pid_t)> {};

// cat ends when its input does.
TEST_P(child_exit, makes_its_descriptor_readable_from_then_on) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, ends[0], 0);
    char name[] = "cat";
    char* const command[] = {name, nullptr};
    ::pid_t id = 0;
    ASSERT_EQ(::posix_spawnp(&id, name, &files, nullptr, command, ::environ), 0);
    ::posix_spawn_file_actions_destroy(&files);
    ::close(ends[0]);

    ::pollfd p = {GetParam()(id).value(), POLLIN, 0};
    EXPECT_EQ(::poll(&p, 1, 0), 0);
    ::close(ends[1]);
    EXPECT_EQ(::poll(&p, 1, 10'000), 1);
    EXPECT_EQ(::poll(&p, 1, 0), 1);

    int status = -1;
    EXPECT_EQ(::waitpid(id, &status, WNOHANG), id);  // it was not reaped
    EXPECT_EQ(status, 0);
    EXPECT_NE(::fcntl(p.fd, F_GETFD) & FD_CLOEXEC, 0);
    ::close(p.fd);
}

INSTANTIATE_TEST_SUITE_P(found, child_exit,
                         ::testing::Values(weft::detail::child_exit_fd,
                                           weft::detail::exit_descriptor_by_thread));

}  // namespace
