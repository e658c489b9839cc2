// Children that lead groups of processes, and children that join them. A pipe that a process holds
// shows that the process is there: a process that was not reaped keeps its id for a while.

#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include "test/io/channels.hpp"
#include "test/io/names.hpp"
#include "weft/io/process.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::child_group;
using weft::child_io;
using weft::exit_status;
using weft::pipe_reader;
using weft::process;
using weft::process_options;
using weft::testing::plain_fd;

class a_group : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_group);

process begun(const std::string& text, ::pid_t group, process_options o = {}) {
    o.out = child_io::piped;
    o.group = group;
    return process::spawn({"sh", "-c", text}, o).value();
}

// The leader and a child of it, which prints "ready" and holds the pipe.
constexpr const char* with_heir = "(echo ready; exec sleep 1000) & wait";
constexpr const char* leaves_heir = "(echo ready; exec sleep 1000) &";
constexpr const char* with_deaf_heir =
    "(trap '' TERM; echo ready; while :; do sleep 1000; done) & wait";

void until_ready(process& p) {
    std::string s(6, 0);
    ASSERT_TRUE(p.out().read_exact(room(s)));
    ASSERT_EQ(s, "ready\n");
}
// All that held it have ended.
bool all_gone(pipe_reader& out) {
    out.set_options({.read_timeout = 5s});
    std::string s(1, 0);
    return out.read(room(s)).value_or(1) == 0;
}
bool some_left(pipe_reader& out) {
    out.set_options({.read_timeout = 5ms});
    std::string s(1, 0);
    return out.read(room(s)).error() == std::errc::timed_out;
}
bool is_number_free(::pid_t id) { return ::kill(id, 0) != 0 && errno == ESRCH; }

// Of this thread, also those that have ended.
std::string children() { return weft::testing::told_of_thread(::gettid(), "children"); }

TEST_P(a_group, is_that_of_this_program_by_default) {
    run([] {
        const process p = process::spawn({"sleep", "1000"}).value();
        EXPECT_EQ(::getpgid(p.id()), ::getpgrp());
        EXPECT_EQ(p.kill_group().error(), std::errc::invalid_argument);
        EXPECT_TRUE(p.kill(0));
    });
}

TEST_P(a_group, can_be_led_by_its_child) {
    run([] {
        const process p = process::spawn({"sleep", "1000"}, {.group = child_group::own}).value();
        EXPECT_EQ(::getpgid(p.id()), p.id());
        EXPECT_EQ(::getsid(p.id()), ::getsid(0));
    });
}

TEST_P(a_group, can_be_in_a_session_of_its_own) {
    run([] {
        const process p =
            process::spawn({"sleep", "1000"}, {.group = child_group::session}).value();
        EXPECT_EQ(::getpgid(p.id()), p.id());
        EXPECT_EQ(::getsid(p.id()), p.id());
    });
}

TEST_P(a_group, can_be_joined_until_its_leader_is_destroyed) {
    run([] {
        process leader = begun("exit 0", child_group::own);
        ASSERT_TRUE(leader.wait());  // it has ended, and is there
        const process p = process::spawn({"sleep", "1000"}, {.group = leader.id()}).value();
        EXPECT_EQ(::getpgid(p.id()), leader.id());
        EXPECT_EQ(p.kill_group().error(), std::errc::invalid_argument);
        ASSERT_TRUE(leader.kill_group(SIGKILL));
        EXPECT_EQ(p.wait().value().signal, SIGKILL);
    });
}

TEST_P(a_group, that_does_not_exist_cannot_be_joined) {
    run([] {
        ::pid_t id = 0;
        {
            const process gone = begun("exit 0", child_group::own);
            id = gone.id();
        }
        ASSERT_TRUE(is_number_free(id));
        EXPECT_EQ(process::spawn({"true"}, {.group = id}).error(),
                  std::errc::operation_not_permitted);
        const process elsewhere = begun("sleep 1000", child_group::session);
        const std::string before = children();
        EXPECT_EQ(process::spawn({"true"}, {.group = elsewhere.id()}).error(),
                  std::errc::operation_not_permitted);
        for (const ::pid_t none : {0, -4, -1000})
            EXPECT_EQ(process::spawn({"true"}, {.group = none}).error(),
                      std::errc::invalid_argument);
        EXPECT_EQ(children(), before) << "a child is left";
    });
}

TEST_P(a_group, receives_a_signal_as_a_whole) {
    run([] {
        process p = begun(with_heir, child_group::own);
        until_ready(p);
        ASSERT_TRUE(p.kill_group());
        EXPECT_EQ(p.wait().value().signal, SIGTERM);
        EXPECT_TRUE(all_gone(p.out()));
    });
}

TEST_P(a_group, receives_no_signal_that_is_for_its_leader_alone) {
    run([] {
        process p = begun(with_heir, child_group::own);
        until_ready(p);
        ASSERT_TRUE(p.kill(SIGKILL));
        EXPECT_EQ(p.wait().value().signal, SIGKILL);
        EXPECT_TRUE(some_left(p.out()));
    });
}

// The id stays the group's until the object is destroyed.
TEST_P(a_group, receives_signals_after_its_leader_has_exited) {
    run([] {
        process p = begun(leaves_heir, child_group::own);
        until_ready(p);
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(p.wait().value().ok());
        EXPECT_FALSE(is_number_free(p.id()));
        EXPECT_EQ(p.kill().error(), std::errc::no_such_process);
        EXPECT_TRUE(some_left(p.out()));
        ASSERT_TRUE(p.kill_group());
        EXPECT_TRUE(all_gone(p.out()));
        EXPECT_TRUE(p.wait().value().ok());
    });
}

TEST_P(a_group, ends_with_the_object_of_its_leader) {
    run([] {
        for (const char* const text : {with_heir, leaves_heir, with_deaf_heir}) {
            pipe_reader out;
            ::pid_t id = 0;
            {
                process p = begun(text, child_group::own);
                until_ready(p);
                id = p.id();
                out = std::move(p.out());
            }
            EXPECT_TRUE(all_gone(out)) << text;
            EXPECT_TRUE(is_number_free(id));
        }
    });
}

TEST_P(a_group, receives_sigterm_before_it_is_killed) {
    run([] {
        pipe_reader out;
        {
            process p = begun("trap 'echo asked; exit' TERM; sleep 1000 & echo ready; wait",
                              child_group::own);
            until_ready(p);
            out = std::move(p.out());
        }
        std::array<std::byte, 6> asked;
        EXPECT_TRUE(out.read_exact(asked));
        EXPECT_TRUE(all_gone(out));
    });
}

TEST_P(a_group, is_killed_after_the_grace_period_if_sigterm_is_ignored) {
    run([] {
        pipe_reader out;
        {
            process p = begun("trap '' TERM; (echo ready; exec sleep 1000) & wait; exec sleep 1000",
                              child_group::own, {.grace = 2ms});
            until_ready(p);
            out = std::move(p.out());
        }
        EXPECT_TRUE(all_gone(out));
    });
}

TEST_P(a_group, ends_with_a_stopped_fiber_or_a_destroyed_task) {
    run([] {
        pipe_reader out;
        fiber f([&] {
            process p = begun(with_heir, child_group::own);
            until_ready(p);
            out = std::move(p.out());
            EXPECT_EQ(p.wait().error(), std::errc::operation_canceled);
        });
        while (!out) weft::this_fiber::sleep_for(1ms);
        f.request_stop();
        f.join();
        EXPECT_TRUE(all_gone(out));
        auto leave = [&]() -> weft::task<> {
            process p = begun(leaves_heir, child_group::own);
            EXPECT_TRUE((co_await p.async_wait()).value().ok());
            out = std::move(p.out());
        };
        weft::await(leave());
        std::string s(6, 0);
        static_cast<void>(out.read_exact(room(s)));  // unless it was ended before it printed that
        EXPECT_TRUE(all_gone(out));
    });
    pipe_reader of_thread;
    std::thread([&] {
        process p = begun(with_heir, child_group::own);
        until_ready(p);
        of_thread = std::move(p.out());
    }).join();
    EXPECT_TRUE(all_gone(of_thread));
}

// No search is made for what a program that takes the status away has left of a group.
TEST_P(a_group, receives_no_signal_after_its_leader_was_reaped_elsewhere) {
    run([] {
        const process p = begun("exit 0", child_group::own);
        ASSERT_EQ(::waitpid(p.id(), nullptr, 0), p.id());
        EXPECT_EQ(p.kill_group().error(), std::errc::no_such_process);
        EXPECT_EQ(p.wait().error(), std::errc::no_child_process);
    });
}

TEST_P(a_group, in_a_session_controls_the_terminal_it_takes) {
    run([] {
        int master = -1;
        int slave = -1;
        ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
        pipe_reader screen = pipe_reader::adopt(master).value();
        process p = process::spawn({"sh", "-c", "exec >/dev/tty; echo ready; exec sleep 1000"},
                                   {.in = slave,
                                    .out = child_io::discarded,
                                    .group = child_group::session,
                                    .takes_terminal = true})
                        .value();
        ::close(slave);
        std::string s(7, 0);
        ASSERT_TRUE(screen.read_exact(room(s)));
        EXPECT_EQ(s, "ready\r\n");
        // Its ^C is the group's.
        ASSERT_EQ(::write(screen.native_handle(), "\003", 1), 1);
        EXPECT_EQ(p.wait().value().signal, SIGINT);
    });
}

TEST_P(a_group, takes_no_terminal_without_a_session_or_a_terminal) {
    run([] {
        EXPECT_EQ(
            process::spawn({"true"}, {.group = child_group::own, .takes_terminal = true}).error(),
            std::errc::invalid_argument);
        EXPECT_EQ(process::spawn({"true"}, {.in = child_io::discarded,
                                            .group = child_group::session,
                                            .takes_terminal = true})
                      .error(),
                  std::errc::inappropriate_io_control_operation);
    });
}

}  // namespace
