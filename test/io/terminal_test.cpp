#include "weft/io/terminal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "test/io/channels.hpp"
#include "test/io/names.hpp"
#include "test/io/way.hpp"
#include "weft/io/process.hpp"
#include "weft/io/signal_set.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::result;
using weft::serial_flow;
using weft::serial_line;
using weft::serial_options;
using weft::serial_parity;
using weft::task;
using weft::terminal_mode;
using weft::terminal_scope;
using weft::terminal_size;
using weft::testing::crew;
using weft::testing::plain_fd;

// A terminal, and its other end, in place of a user or a device.
struct both_ends {
    plain_fd far;
    plain_fd near;
    std::string path = std::string(100, 0);
    both_ends() {
        int master = -1;
        int slave = -1;
        EXPECT_EQ(::openpty(&master, &slave, path.data(), nullptr, nullptr), 0);
        far = plain_fd(master);
        near = plain_fd(slave);
        path.resize(path.find('\0'));
        for (const int n : {master, slave}) ::fcntl(n, F_SETFD, FD_CLOEXEC);
    }
};

::termios modes_of(int number) {
    ::termios t{};
    EXPECT_EQ(::tcgetattr(number, &t), 0);
    return t;
}
bool is_raw(int number) { return (modes_of(number).c_lflag & (ICANON | ECHO | ISIG)) == 0; }
bool is_as_ever(int number) {
    return (~modes_of(number).c_lflag & (ICANON | ECHO | ISIG)) == 0 &&
           (modes_of(number).c_oflag & OPOST) != 0;
}

TEST(a_terminal_scope, changes_the_modes_and_restores_them) {
    const both_ends t;
    const ::termios before = modes_of(t.near);
    {
        const auto raw = terminal_scope::start(t.near);
        ASSERT_TRUE(raw);
        EXPECT_TRUE(is_raw(t.near));
        EXPECT_EQ(modes_of(t.near).c_oflag & OPOST, 0u);
        EXPECT_EQ(modes_of(t.near).c_cc[VMIN], 1);
    }
    EXPECT_TRUE(is_as_ever(t.near));
    const ::termios after = modes_of(t.near);
    EXPECT_EQ(after.c_iflag, before.c_iflag);
    EXPECT_EQ(after.c_oflag, before.c_oflag);
    EXPECT_EQ(after.c_cflag, before.c_cflag);
    EXPECT_EQ(after.c_lflag, before.c_lflag);
}

TEST(a_terminal_scope, for_keys_keeps_signals_and_output_processing) {
    const both_ends t;
    const auto keys = terminal_scope::start(t.near, terminal_mode::keys);
    const ::termios m = modes_of(t.near);
    EXPECT_EQ(m.c_lflag & (ICANON | ECHO), 0u);
    EXPECT_NE(m.c_lflag & ISIG, 0u);
    EXPECT_NE(m.c_oflag & OPOST, 0u);
}

TEST(a_terminal_scope, for_hidden_input_keeps_line_mode) {
    const both_ends t;
    const auto hidden = terminal_scope::start(t.near, terminal_mode::hidden);
    const ::termios m = modes_of(t.near);
    EXPECT_EQ(m.c_lflag & ECHO, 0u);
    EXPECT_NE(m.c_lflag & ICANON, 0u);
}

TEST(a_terminal_scope, of_what_is_no_terminal_is_an_error) {
    const auto p = weft::pipe::open().value();
    EXPECT_EQ(terminal_scope::start(p.reader.native_handle()).error(),
              std::errc::inappropriate_io_control_operation);
    EXPECT_EQ(terminal_scope::start(-1).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(weft::size_of_terminal(p.reader.native_handle()).error(),
              std::errc::inappropriate_io_control_operation);
}

TEST(a_terminal_scope, outlives_the_descriptor_it_was_given) {
    both_ends t;
    const auto before = weft::testing::descriptor_count();
    {
        const auto raw = terminal_scope::start(t.near);
        t.near.close();
        EXPECT_TRUE(is_raw(t.far));
    }
    EXPECT_TRUE(is_as_ever(t.far));
    EXPECT_EQ(weft::testing::descriptor_count(), before - 1);
}

TEST(a_terminal_scope, can_end_early_and_ends_only_once) {
    const both_ends t;
    auto raw = terminal_scope::start(t.near).value();
    EXPECT_TRUE(raw.end());
    EXPECT_TRUE(is_as_ever(t.near));
    const auto other = terminal_scope::start(t.near);
    EXPECT_TRUE(raw.end());
    EXPECT_TRUE(is_raw(t.near));
    EXPECT_EQ(raw.again().error(), weft::errc::closed);
}

TEST(a_terminal_scope, can_set_its_modes_again_after_a_change) {
    const both_ends t;
    auto raw = terminal_scope::start(t.near).value();
    ::termios m = modes_of(t.near);
    m.c_lflag |= ECHO | ICANON;
    ASSERT_EQ(::tcsetattr(t.near, TCSANOW, &m), 0);
    EXPECT_TRUE(raw.again());
    EXPECT_TRUE(is_raw(t.near));
}

TEST(a_terminal_scope, can_be_moved_and_ends_when_assigned_to) {
    const both_ends t;
    const both_ends u;
    std::optional<terminal_scope> first = terminal_scope::start(t.near).value();
    terminal_scope there = std::move(*first);
    first.reset();
    EXPECT_TRUE(is_raw(t.near));
    there = terminal_scope::start(u.near).value();
    EXPECT_TRUE(is_as_ever(t.near));
    EXPECT_TRUE(is_raw(u.near));
}

TEST(a_terminal_scope, within_another_restores_the_outer_modes) {
    const both_ends t;
    const auto keys = terminal_scope::start(t.near, terminal_mode::keys);
    {
        const auto raw = terminal_scope::start(t.near);
        EXPECT_TRUE(is_raw(t.near));
    }
    EXPECT_NE(modes_of(t.near).c_lflag & ISIG, 0u);
    EXPECT_EQ(modes_of(t.near).c_lflag & ICANON, 0u);
}

TEST(a_terminal_scope, is_not_ended_by_a_forked_child) {
    const both_ends t;
    const auto raw = terminal_scope::start(t.near);
    const ::pid_t id = ::fork();
    if (id == 0) {
        auto* const mine = const_cast<terminal_scope*>(&*raw);
        static_cast<void>(mine->end());
        ::_exit(0);
    }
    ASSERT_EQ(::waitpid(id, nullptr, 0), id);
    EXPECT_TRUE(is_raw(t.near));
}

// A terminal that the process has as its own, as from a shell.
int status_of(const std::function<bool(const both_ends&)>& in_session) {
    const both_ends t;
    const ::pid_t id = ::fork();
    if (id == 0) {
        const bool is_ready = ::setsid() > 0 && ::ioctl(t.near, TIOCSCTTY, 0) == 0;
        ::_exit(!is_ready ? 2 : in_session(t) ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(id, &status, 0), id);
    return status;
}

TEST(a_terminal_scope, in_the_foreground_sets_and_restores_the_modes) {
    EXPECT_EQ(status_of([](const both_ends& t) {
                  {
                      const auto raw = terminal_scope::start(t.near);
                      if (!raw || !is_raw(t.near)) return false;
                  }
                  return is_as_ever(t.near);
              }),
              0);
}

TEST(a_terminal_scope, in_the_background_leaves_the_terminal_alone) {
    EXPECT_EQ(status_of([](const both_ends& t) {
                  auto raw = terminal_scope::start(t.near).value();
                  const ::pid_t id = ::fork();  // has the terminal from now on
                  if (id == 0) {
                      ::pause();
                      ::_exit(0);
                  }
                  ::signal(SIGTTOU, SIG_IGN);
                  ::setpgid(id, id);
                  if (::tcsetpgrp(t.near, id) != 0) return false;
                  ::signal(SIGTTOU, SIG_DFL);
                  const auto other = terminal_scope::start(t.near);
                  const bool right = other.error() == std::errc::device_or_resource_busy &&
                                     raw.again().error() == std::errc::device_or_resource_busy &&
                                     raw.end().error() == std::errc::device_or_resource_busy &&
                                     is_raw(t.near);
                  ::kill(id, SIGKILL);
                  return right;
              }),
              0);
}

int number_at_exit = -1;

TEST(a_terminal_scope_death, is_ended_by_a_normal_exit_of_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const both_ends t;
            number_at_exit = ::dup(t.near);
            // Runs after what start() has registered.
            std::atexit([] { ::_exit(is_as_ever(number_at_exit) ? 7 : 8); });
            const auto keys = terminal_scope::start(t.near, terminal_mode::keys);
            const auto raw = terminal_scope::start(t.near);
            if (is_raw(t.near)) std::exit(1);
        },
        ::testing::ExitedWithCode(7), "");
}

class a_terminal : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_terminal);

TEST_P(a_terminal, is_restored_when_a_fiber_is_stopped_or_killed) {
    const both_ends t;
    run([&] {
        fiber f([&] {
            const auto raw = terminal_scope::start(t.near);
            weft::this_fiber::sleep_for(1h);
        });
        weft::this_fiber::sleep_for(1ms);
        EXPECT_TRUE(is_raw(t.near));
        f.request_stop();
        static_cast<void>(f.join());
        EXPECT_TRUE(is_as_ever(t.near));
    });
    {
        weft::loop l(weft::make_io_driver(GetParam()));
        fiber f(
            [&] {
                const auto raw = terminal_scope::start(t.near);
                weft::this_fiber::sleep_for(1h);
            },
            {.on = l});
        l.run_once(weft::steady_now());
        EXPECT_TRUE(is_raw(t.near));
        f.detach();
    }
    EXPECT_TRUE(is_as_ever(t.near));
}

TEST_P(a_terminal, notifies_its_processes_of_a_new_size) {
    run([] {
        const both_ends t;
        ASSERT_TRUE(weft::resize_terminal(t.far, {.columns = 80, .rows = 25}));
        EXPECT_EQ(weft::size_of_terminal(t.near).value(), (terminal_size{80, 25}));
        EXPECT_EQ(weft::resize_terminal(t.far, {.columns = 1 << 16}).error(),
                  std::errc::invalid_argument);
        weft::pipe_reader screen = weft::pipe_reader::adopt(::dup(t.far)).value();
        const weft::process p = weft::process::spawn({"sh", "-c",
                                                      "trap 'stty size; exit' WINCH; echo ready; "
                                                      "while :; do sleep 0.01; done"},
                                                     {.in = t.near,
                                                      .out = t.near,
                                                      .group = weft::child_group::session,
                                                      .takes_terminal = true})
                                    .value();
        std::string s(7, 0);
        ASSERT_TRUE(screen.read_exact(room(s)));
        EXPECT_EQ(s, "ready\r\n");
        ASSERT_TRUE(weft::resize_terminal(t.far, {.columns = 100, .rows = 30}));
        s.assign(8, 0);
        ASSERT_TRUE(screen.read_exact(room(s)));
        EXPECT_EQ(s, "30 100\r\n");
    });
}

TEST_P(a_terminal, reports_a_resize_by_a_signal_that_can_be_awaited) {
    run([] {
        const auto resized = weft::signal_set::open({SIGWINCH}).value();
        ASSERT_EQ(::kill(::getpid(), SIGWINCH), 0);
        EXPECT_EQ(resized.wait().value().number, SIGWINCH);
    });
}

class a_terminals_master : public weft::testing::on_each_way {};
INSTANTIATE_ON_WAYS(a_terminals_master);

// Linux answers EIO to a read of the master side, here in each way a read can be made.
TEST_P(a_terminals_master, is_at_its_end_once_the_other_side_is_closed) {
    both_ends t;
    weft::pipe_reader screen = weft::pipe_reader::adopt(::dup(t.far)).value();
    std::string s(5, 0);
    std::string more(1, 0);
    crew agent(way(), [&](auto wait) -> task<> {
        const auto all = co_await wait(screen.async_read_exact(room(s)));
        EXPECT_TRUE(!all && all.bytes() == 4);
        const auto n = co_await wait(screen.async_read(room(more)));
        EXPECT_EQ(n.value_or(1), 0u);
        const std::array<std::span<std::byte>, 2> parts = {room(s), room(more)};
        const auto of_several = co_await wait(screen.async_read(parts));
        EXPECT_EQ(of_several.value_or(1), 0u);
        const auto borrowed = co_await wait(screen.async_read_borrowed());
        EXPECT_TRUE(borrowed && borrowed->empty());
    });
    agent.asleep();
    ASSERT_EQ(::write(t.near, "here", 4), 4);
    t.near.close();
    agent.join();
    // Opened again, it goes on.
    const plain_fd again(::open(t.path.c_str(), O_RDWR | O_NOCTTY));
    ASSERT_EQ(::write(again, "x", 1), 1);
    crew reader(way(), [&](auto wait) -> task<> {
        const auto n = co_await wait(screen.async_read(room(more)));
        EXPECT_EQ(n.value_or(0), 1u);
    });
    reader.join();
}

class a_serial_line : public weft::testing::on_each_way {};
INSTANTIATE_ON_WAYS(a_serial_line);

TEST_P(a_serial_line, carries_bytes_unchanged_both_ways) {
    const both_ends t;
    serial_line line = serial_line::open(t.path).value();
    EXPECT_TRUE(is_raw(t.near));
    EXPECT_NE(::fcntl(line.reader.native_handle(), F_GETFL) & O_NONBLOCK, 0);
    std::string got(5, 0);
    crew agent(way(), [&](auto wait) -> task<> {
        const auto n = co_await wait(line.reader.async_read_exact(room(got)));
        EXPECT_TRUE(n);
        EXPECT_TRUE(co_await wait(line.writer.async_write_all(bytes_of("\n\003\r"))));
    });
    agent.asleep();
    ASSERT_EQ(::write(t.far, "a\r\003\n\177", 5), 5);
    agent.join();
    EXPECT_EQ(got, "a\r\003\n\177");
    std::string back(10, 0);
    ASSERT_EQ(::read(t.far, back.data(), 10), 3);
    EXPECT_EQ(back.substr(0, 3), "\n\003\r");
}

TEST_P(a_serial_line, reports_that_its_other_side_is_closed) {
    both_ends t;
    serial_line line = serial_line::open(t.path).value();
    t.near.close();
    std::string s(1, 0);
    crew agent(way(), [&](auto wait) -> task<> {
        const auto n = co_await wait(line.reader.async_read(room(s)));
        EXPECT_EQ(n.value_or(1), 0u);
    });
    agent.asleep();
    t.far.close();
    agent.join();
    EXPECT_EQ(line.writer.write(bytes_of("x")).error(), std::errc::io_error);
}

TEST_P(a_serial_line, is_paused_and_resumed_by_software_flow_control) {
    const both_ends t;
    serial_line line = serial_line::open(t.path, {.flow = serial_flow::software}).value();
    const std::string stop(1, '\023');
    const std::string go_on(1, '\021');
    ASSERT_EQ(::write(t.far, stop.data(), 1), 1);
    bool done = false;
    crew agent(way(), [&](auto wait) -> task<> {
        // What the other side sends takes a little time to arrive.
        co_await wait(weft::sleep_for(20ms));
        EXPECT_TRUE(co_await wait(line.writer.async_write_all(bytes_of("x"))));
        done = true;
    });
    std::this_thread::sleep_for(30ms);
    agent.asleep();
    EXPECT_FALSE(agent.has_ended());
    ASSERT_EQ(::write(t.far, go_on.data(), 1), 1);
    agent.join();
    EXPECT_TRUE(done);
}

TEST_P(a_serial_line, is_open_until_both_ends_are_closed) {
    both_ends t;
    serial_line line = serial_line::open(t.path).value();
    t.near.close();
    line.writer.close();
    std::string s(1, 0);
    crew agent(way(), [&](auto wait) -> task<> {
        const auto n = co_await wait(line.reader.async_read(room(s)));
        EXPECT_EQ(n.value_or(0), 1u);
    });
    agent.asleep();
    ASSERT_EQ(::write(t.far, "x", 1), 1);
    agent.join();
}

TEST(a_serial_line_open, sets_the_speed_and_the_form) {
    const both_ends t;
    for (const auto& [baud, code] : {std::pair{9600u, B9600}, {115200u, B115200}, {50u, B50}}) {
        const auto line = serial_line::open(t.path, {.baud = baud, .stop_bits = 2});
        ASSERT_TRUE(line) << line.error().message();
        const ::termios m = modes_of(t.near);
        EXPECT_EQ(::cfgetospeed(&m), code);
        EXPECT_EQ(::cfgetispeed(&m), code);
        EXPECT_NE(m.c_cflag & CSTOPB, 0u);
        EXPECT_NE(m.c_cflag & CLOCAL, 0u);
    }
}

TEST(a_serial_line_open, reports_options_that_are_not_supported) {
    const both_ends t;
    const auto before = weft::testing::descriptor_count();
    const auto refused = [&](const serial_options& o) {
        return serial_line::open(t.path, o).error();
    };
    EXPECT_EQ(refused({.baud = 12345}), std::errc::invalid_argument);
    EXPECT_EQ(refused({.baud = 0}), std::errc::invalid_argument);
    EXPECT_EQ(refused({.data_bits = 9}), std::errc::invalid_argument);
    EXPECT_EQ(refused({.data_bits = 4}), std::errc::invalid_argument);
    EXPECT_EQ(refused({.stop_bits = 3}), std::errc::invalid_argument);
    EXPECT_EQ(refused({.stop_bits = 0}), std::errc::invalid_argument);
    // Of a pseudo terminal.
    EXPECT_EQ(refused({.parity = serial_parity::even}), std::errc::not_supported);
    EXPECT_EQ(refused({.data_bits = 7}), std::errc::not_supported);
    EXPECT_EQ(serial_line::open("/dev/null").error(),
              std::errc::inappropriate_io_control_operation);
    EXPECT_EQ(serial_line::open("/no/such").error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(serial_line::open(std::string("/dev/null\0x", 11)).error(),
              std::errc::invalid_argument);
    EXPECT_EQ(weft::testing::descriptor_count(), before);
}

TEST(a_serial_line_open, acquires_no_controlling_terminal) {
    const both_ends t;
    const ::pid_t id = ::fork();
    if (id == 0) {
        ::setsid();
        const auto line = serial_line::open(t.path);
        ::_exit(line && ::open("/dev/tty", O_RDWR) < 0 && errno == ENXIO ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(id, &status, 0), id);
    EXPECT_EQ(status, 0);
}

}  // namespace
