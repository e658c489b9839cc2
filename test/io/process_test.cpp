#include "weft/io/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include "test/io/names.hpp"
#include "test/support/begun.hpp"
#include "test/support/gate.hpp"
#include "weft/io/signal_set.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::child_io;
using weft::exit_status;
using weft::pipe_reader;
using weft::process;
using weft::process_options;
using weft::testing::descriptor_count;

class child : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(child);

process script(const std::string& text, const process_options& o = {}) {
    return process::spawn({"sh", "-c", text}, o).value();
}

std::string all_of(pipe_reader& r) {
    std::string s;
    std::array<std::byte, 100> b;
    while (const auto n = r.read(b).value_or(0))
        s.append(reinterpret_cast<const char*>(b.data()), n);
    return s;
}

// No process has this id, not even one that was not reaped.
bool is_gone(::pid_t id) { return ::kill(id, 0) != 0 && errno == ESRCH; }

TEST_P(child, reports_its_exit_code) {
    run([] {
        EXPECT_TRUE(script("exit 0").wait().value().ok());
        const exit_status s = script("exit 7").wait().value();
        EXPECT_FALSE(s.ok());
        EXPECT_EQ(s.code, 7);
        EXPECT_EQ(s.signal, 0);
    });
}

TEST_P(child, reports_the_signal_that_ended_it) {
    run([] {
        const exit_status s = script("kill -KILL $$").wait().value();
        EXPECT_FALSE(s.ok());
        EXPECT_EQ(s.signal, SIGKILL);
    });
}

TEST_P(child, is_not_started_by_text_with_an_embedded_zero) {
    run([] {
        const auto spawned = [](const std::vector<std::string>& command,
                                const process_options& o = {}) {
            return process::spawn(command, o).error();
        };
        const std::string cut("/\0x", 3);
        EXPECT_EQ(spawned({std::string("true\0x", 6)}), std::errc::invalid_argument);
        EXPECT_EQ(spawned({"true", cut}), std::errc::invalid_argument);
        EXPECT_EQ(spawned({"true"}, {.environment = {{"A=a", "B=" + cut}}}),
                  std::errc::invalid_argument);
        EXPECT_EQ(spawned({"true"}, {.working_directory = cut}), std::errc::invalid_argument);
        EXPECT_EQ(spawned({"true"}, {.working_directory = "/"}), std::error_code());
    });
}

TEST_P(child, communicates_through_pipes) {
    run([] {
        process p =
            process::spawn({"cat"}, {.in = child_io::piped, .out = child_io::piped}).value();
        EXPECT_FALSE(p.err());
        ASSERT_TRUE(p.in().write_all(bytes_of("there and back")));
        p.in().close();
        EXPECT_EQ(all_of(p.out()), "there and back");
        EXPECT_TRUE(p.wait().value().ok());
    });
}

TEST_P(child, keeps_output_and_errors_apart) {
    run([] {
        process p =
            script("echo out; echo err >&2", {.out = child_io::piped, .err = child_io::piped});
        EXPECT_EQ(all_of(p.out()), "out\n");
        EXPECT_EQ(all_of(p.err()), "err\n");
    });
}

TEST_P(child, can_write_output_and_errors_to_one_pipe) {
    run([] {
        process p =
            script("echo out; echo err >&2", {.out = child_io::piped, .err = child_io::as_output});
        EXPECT_EQ(all_of(p.out()), "out\nerr\n");
        EXPECT_EQ(process::spawn({"true"}, {.out = child_io::as_output}).error(),
                  std::errc::invalid_argument);
    });
}

TEST_P(child, takes_an_fd_as_a_stream) {
    run([] {
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        pipe_reader r = pipe_reader::adopt(ends[0]).value();
        process p = script("echo here", {.in = child_io::discarded, .out = ends[1]});
        ::close(ends[1]);
        EXPECT_TRUE(p.wait().value().ok());
        // Only the child has had the descriptor.
        EXPECT_EQ(all_of(r), "here\n");
        EXPECT_EQ(process::spawn({"true"}, {.in = 1'000'000}).error(),
                  std::errc::bad_file_descriptor);
    });
}

TEST_P(child, has_the_given_environment_and_working_directory) {
    run([] {
        process p = script("echo $WEFT_HERE; pwd",
                           {.out = child_io::piped,
                            .environment = std::vector<std::string>{"WEFT_HERE=there"},
                            .working_directory = "/"});
        EXPECT_EQ(all_of(p.out()), "there\n/\n");
    });
}

TEST_P(child, is_not_started_if_there_is_no_such_program) {
    run([] {
        EXPECT_EQ(process::spawn({"/no/such/program"}).error(),
                  std::errc::no_such_file_or_directory);
        EXPECT_EQ(process::spawn({"no-such-program-of-weft"}).error(),
                  std::errc::no_such_file_or_directory);
        EXPECT_EQ(process::spawn({"true"}, {.working_directory = "/no/such"}).error(),
                  std::errc::no_such_file_or_directory);
        EXPECT_EQ(process::spawn({"/etc/passwd"}).error(), std::errc::permission_denied);
        EXPECT_EQ(process::spawn({}).error(), std::errc::invalid_argument);
    });
}

// The descriptor is a pipe's then.
TEST_P(child, leaves_nothing_open_where_the_program_has_no_stdin) {
    const int kept = ::dup(0);
    ASSERT_EQ(::close(0), 0);
    run([] {
        static_cast<void>(script("exit 0").wait());  // what is opened once is open
        const auto before = descriptor_count();
        {
            const process p = process::spawn({"cat"}, {.in = child_io::piped}).value();
        }
        EXPECT_EQ(descriptor_count(), before);
    });
    ASSERT_EQ(::dup2(kept, 0), 0);
    ::close(kept);
}

TEST_P(child, can_be_killed) {
    run([] {
        const process p = process::spawn({"sleep", "1000"}).value();
        ASSERT_TRUE(p.kill());
        EXPECT_EQ(p.wait().value().signal, SIGTERM);
        EXPECT_EQ(p.wait().value().signal, SIGTERM);  // at any time
        EXPECT_EQ(p.kill().error(), std::errc::no_such_process);
    });
}

TEST_P(child, outlives_a_wait_that_ends_early) {
    run([] {
        const process p = process::spawn({"sleep", "1000"}).value();
        EXPECT_EQ(p.wait(1ms).error(), std::errc::timed_out);
        std::error_code how;
        fiber f([&] { how = p.wait().error(); });
        weft::this_fiber::sleep_for(1ms);
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        EXPECT_TRUE(p.kill(0));
    });
}

TEST_P(child, can_be_waited_for_by_many) {
    run([] {
        const process p = process::spawn({"sleep", "1000"}).value();
        int sum = 0;
        auto add = [&] { sum += p.wait().value().signal; };
        fiber a(add);
        fiber b(add);
        weft::this_fiber::sleep_for(1ms);
        ASSERT_TRUE(p.kill(SIGKILL));
        a.join();
        b.join();
        EXPECT_EQ(sum, 2 * SIGKILL);
    });
}

TEST_P(child, serves_tasks_as_it_serves_fibers) {
    run([] {
        auto ask = []() -> weft::task<int> {
            const process p = script("exit 3");
            co_return (co_await p.async_wait()).value().code;
        };
        EXPECT_EQ(weft::await(ask()), 3);
    });
}

TEST_P(child, serves_plain_threads) {
    std::thread([] { EXPECT_EQ(script("exit 4").wait().value().code, 4); }).join();
}

TEST_P(child, receives_sigterm_from_the_destructor) {
    run([] {
        pipe_reader out;
        ::pid_t id = 0;
        {
            process p = script("trap 'echo asked; exit' TERM; echo ready; read line",
                               {.in = child_io::piped, .out = child_io::piped});
            id = p.id();
            std::array<std::byte, 6> ready;
            ASSERT_TRUE(p.out().read_exact(ready));
            out = std::move(p.out());
        }
        EXPECT_TRUE(is_gone(id));
        EXPECT_EQ(all_of(out), "asked\n");
    });
}

// The wait of a coroutine that the fiber has started and does not await is no wait of the fiber.
TEST_P(child, is_awaited_by_the_destructor_in_a_fiber_in_which_a_coroutine_waits) {
    run([] {
        weft::testing::gate g;
        const weft::testing::begun waits = [](weft::testing::gate& of) -> weft::testing::begun {
            using weft::operator co_await;  // the gate is of another namespace
            co_await of.async_pass();
        }(g);
        bool ran = false;
        {
            process p = script("trap 'exec sleep 0.1' TERM; echo ready; read line",
                               {.in = child_io::piped, .out = child_io::piped});
            std::array<std::byte, 6> ready;
            ASSERT_TRUE(p.out().read_exact(ready));
            fiber([&] { ran = true; }).detach();
        }
        EXPECT_TRUE(ran);
        EXPECT_TRUE(g.let_one_pass());
    });
}

TEST_P(child, is_killed_by_the_destructor_if_it_ignores_sigterm) {
    run([] {
        ::pid_t id = 0;
        {
            process p = script("trap '' TERM; echo ready; exec sleep 1000",
                               {.out = child_io::piped, .grace = 2ms});
            id = p.id();
            std::array<std::byte, 6> ready;
            ASSERT_TRUE(p.out().read_exact(ready));
        }
        EXPECT_TRUE(is_gone(id));
    });
}

TEST_P(child, is_reaped_when_its_object_is_destroyed_or_assigned_to) {
    ::pid_t of_thread = 0;
    std::thread([&] { of_thread = process::spawn({"sleep", "1000"}).value().id(); }).join();
    EXPECT_TRUE(is_gone(of_thread));
    run([] {
        auto leave = [](bool waits) -> weft::task<::pid_t> {
            const process p = process::spawn({"sleep", "1000"}).value();
            if (waits) {
                EXPECT_FALSE(co_await p.async_wait(1ms));
            }
            co_return p.id();
        };
        EXPECT_TRUE(is_gone(weft::await(leave(false))));
        EXPECT_TRUE(is_gone(weft::await(leave(true))));
        process p = process::spawn({"sleep", "1000"}).value();
        const ::pid_t first = p.id();
        p = script("exit 0");
        EXPECT_TRUE(is_gone(first));
    });
}

TEST_P(child, is_reaped_when_its_fiber_is_stopped) {
    run([] {
        ::pid_t id = 0;
        fiber f([&] {
            const process p = process::spawn({"sleep", "1000"}).value();
            id = p.id();
            EXPECT_EQ(p.wait().error(), std::errc::operation_canceled);
        });
        weft::this_fiber::sleep_for(1ms);
        f.request_stop();
        f.join();
        EXPECT_TRUE(is_gone(id));
    });
}

TEST_P(child, receives_signals_that_this_program_does_not) {
    run([] {
        const auto s = weft::signal_set::open({SIGTERM}).value();
        const auto before = ::signal(SIGPIPE, SIG_IGN);
        const process p = process::spawn({"sleep", "1000"}).value();
        ASSERT_TRUE(p.kill(SIGTERM));
        EXPECT_EQ(p.wait().value().signal, SIGTERM);
        EXPECT_EQ(script("kill -PIPE $$").wait().value().signal, SIGPIPE);
        ::signal(SIGPIPE, before);
    });
}

}  // namespace
