#include "weft/io/process_limits.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "test/io/drivers.hpp"
#include "test/io/way.hpp"
#include "weft/io/owned_number.hpp"
#include "weft/io/process.hpp"

namespace {

using weft::child_io;
using weft::exit_status;
using weft::process;
using weft::process_limits;
using weft::resource_limit;
using weft::testing::room;

class a_limited_child : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_limited_child);

std::string said_by(const std::string& text, const process_limits& limits) {
    process p =
        process::spawn({"sh", "-c", text}, {.out = child_io::piped, .limits = limits}).value();
    std::string s(200, 0);
    std::size_t all = 0;
    while (const auto n = p.out().read(room(s).subspan(all)).value_or(0)) all += n;
    return s.substr(0, all);
}

::rlimit mine(decltype(RLIMIT_NOFILE) which) {
    ::rlimit r{};
    EXPECT_EQ(::getrlimit(which, &r), 0);
    return r;
}

TEST_P(a_limited_child, has_each_limit_and_this_program_keeps_its_own) {
    run([] {
        const ::rlimit before = mine(RLIMIT_NOFILE);
        EXPECT_EQ(said_by("ulimit -Sn; ulimit -Hn", {.files = {20, 30}}), "20\n30\n");
        EXPECT_EQ(said_by("ulimit -Sn; ulimit -Hn", {.files = 25}), "25\n25\n");
        EXPECT_EQ(said_by("ulimit -Sv", {.memory_bytes = 1 << 30}), "1048576\n");
        EXPECT_EQ(said_by("ulimit -Ss", {.stack_bytes = {4 << 20, resource_limit::none}}),
                  "4096\n");
        EXPECT_EQ(said_by("ulimit -Sf", {.file_bytes = 1 << 20}), "2048\n");
        EXPECT_EQ(said_by("ulimit -Sc; ulimit -Hc", {.core_bytes = 0}), "0\n0\n");
        EXPECT_EQ(said_by("ulimit -St; ulimit -Ht", {.cpu_seconds = {7, 9}}), "7\n9\n");
        EXPECT_EQ(said_by("ulimit -Sp", {.processes = 5000}), "5000\n");
        EXPECT_EQ(said_by("ulimit -Sn; ulimit -Sc; ulimit -St",
                          {.files = 21, .core_bytes = 0, .cpu_seconds = 8}),
                  "21\n0\n8\n");
        EXPECT_EQ(mine(RLIMIT_NOFILE).rlim_cur, before.rlim_cur);
        EXPECT_EQ(mine(RLIMIT_NOFILE).rlim_max, before.rlim_max);
    });
}

TEST_P(a_limited_child, inherits_limits_that_are_not_set) {
    run([] {
        EXPECT_EQ(said_by("ulimit -Sn", {.core_bytes = 0}),
                  std::to_string(mine(RLIMIT_NOFILE).rlim_cur) + "\n");
        EXPECT_EQ(said_by("ulimit -Sn", {}), std::to_string(mine(RLIMIT_NOFILE).rlim_cur) + "\n");
    });
}

TEST_P(a_limited_child, is_ended_by_the_kernel_when_it_exceeds_a_limit) {
    run([] {
        const process p =
            process::spawn({"sh", "-c", "while :; do :; done"}, {.limits = {.cpu_seconds = {1, 2}}})
                .value();
        EXPECT_EQ(p.wait().value().signal, SIGXCPU);
        const weft::owned_number file(weft::testing::file_of(""));
        const process q = process::spawn({"sh", "-c", "exec head -c 5000 /dev/zero"},
                                         {.out = file.get(), .limits = {.file_bytes = 4096}})
                              .value();
        EXPECT_EQ(q.wait().value().signal, SIGXFSZ);
    });
}

// Its program cannot be linked then, and reports that through these streams.
TEST_P(a_limited_child, with_a_limit_of_three_files_keeps_its_streams) {
    run([] {
        process p = process::spawn({"sh", "-c", "exit 0"}, {.in = child_io::discarded,
                                                            .out = child_io::piped,
                                                            .err = child_io::as_output,
                                                            .working_directory = "/",
                                                            .limits = {.files = 3}})
                        .value();
        EXPECT_EQ(p.wait().value().code, 127);
        std::string s(500, 0);
        EXPECT_GT(p.out().read(room(s)).value(), 0u);
        EXPECT_NE(s.find("shared libraries"), s.npos) << s;
    });
}

TEST_P(a_limited_child, is_not_started_if_a_limit_is_refused) {
    run([] {
        const auto spawned = [](const process_limits& l) {
            const auto p = process::spawn({"true"}, {.in = child_io::piped, .limits = l});
            return p ? std::error_code() : p.error();
        };
        static_cast<void>(spawned({}));
        const auto before = weft::testing::descriptor_count();
        const std::string children = weft::testing::told_of_thread(::gettid(), "children");
        EXPECT_EQ(spawned({.files = {20, 10}}), std::errc::invalid_argument);
        EXPECT_EQ(spawned({.core_bytes = 0, .cpu_seconds = {2, 1}}), std::errc::invalid_argument);
        // More than the system allows any process.
        EXPECT_EQ(spawned({.files = 1'000'000'000'000}), std::errc::operation_not_permitted);
        EXPECT_EQ(weft::testing::told_of_thread(::gettid(), "children"), children);
        EXPECT_EQ(weft::testing::descriptor_count(), before);
    });
}

}  // namespace
