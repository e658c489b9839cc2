// on_each_driver: the same law with epoll, io_uring and poll.
//
//   class echo : public weft::testing::on_each_driver {};
//   TEST_P(echo, gives_back_what_it_got) { run([&] { ... in a fiber ... }); }
//   INSTANTIATE_ON_DRIVERS(echo);
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/io/driver_kqueue.hpp"
#include "weft/io/driver_uring.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/io/tcp_stream.hpp"
#include "weft/sched/loop.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace weft::testing {

inline const char* name_of(io_kind k) {
    switch (k) {
        case io_kind::epoll:
            return "epoll";
        case io_kind::io_uring:
            return "io_uring";
        case io_kind::kqueue:
            return "kqueue";
        default:
            return "poll";
    }
}

// kqueue's is among them where it is built.
inline std::vector<io_kind> all_drivers() {
    std::vector<io_kind> all{io_kind::epoll, io_kind::io_uring, io_kind::poll};
    static const bool has_kqueue = [] {
        const char* why = nullptr;
        return make_driver_kqueue(&why) != nullptr;
    }();
    if (has_kqueue) all.push_back(io_kind::kqueue);
    return all;
}

class on_each_driver : public ::testing::TestWithParam<io_kind> {
protected:
    void SetUp() override {
        const char* why = nullptr;
        if (GetParam() == io_kind::io_uring && make_driver_uring(&why) == nullptr)
            GTEST_SKIP() << "io_uring: " << why;
        loop_ = std::make_unique<weft::loop>(make_io_driver(GetParam()));
    }

    weft::loop& loop() { return *loop_; }

    // f in a fiber of the loop, and the loop until all has ended; for ten seconds at most, or more
    // where everything takes longer.
    template <class F>
    void run(F f) {
        bool ended = false;
        {
            fiber main(
                [&] {
                    timeout_scope limit(
                        std::chrono::seconds(WEFT_TEST_ASAN || WEFT_TEST_TSAN ? 30 : 10));
                    f();
                    ended = true;
                },
                {.name = "test", .on = *loop_});
            loop_->run();
        }
        EXPECT_TRUE(ended) << "it was stopped";
    }

    void end_loop() { loop_.reset(); }

private:
    std::unique_ptr<weft::loop> loop_;
};

// Two ends of a connection.
struct connection {
    tcp_stream client;
    tcp_stream server;
};

inline tcp_listener any_listener() { return tcp_listener::bind("127.0.0.1:0").value(); }

inline connection connected() {
    tcp_listener l = any_listener();
    connection c;
    c.client = tcp_stream::connect(l.local_endpoint()).value();
    c.server = l.accept().value();
    return c;
}

// Whether f() holds for one of the ports that it has the system choose, which may be another
// program's at another address.
template <class F>
bool for_some_port(F f) {
    for (int i = 0; i != 100; ++i)
        if (f()) return true;
    return false;
}

// Of the process, so far.
inline double cpu_seconds() {
    ::timespec t;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline std::span<std::byte> room(std::string& s) { return std::as_writable_bytes(std::span(s)); }

// How many descriptors this process has open. UBSan opens a pipe to find out whether memory can be
// read, and closes it at once, in any thread, also in one of the library that has just begun: what
// is open in each of four looks is counted.
inline long descriptor_count() {
    long least = std::numeric_limits<long>::max();
    for (int looks = WEFT_TEST_ASAN ? 4 : 1; looks != 0; --looks) {
        const std::filesystem::directory_iterator all("/proc/self/fd");
        least = std::min<long>(least, std::distance(begin(all), end(all)));
        if (looks != 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return least;
}

// No two stretches of it are alike.
inline std::string bytes_unlike(std::size_t bytes) {
    std::string s(bytes, 0);
    for (std::size_t i = 0; i < bytes; ++i) s[i] = static_cast<char>(i * 2654435761u >> 24);
    return s;
}

// A file that has no name, to be read from its beginning.
inline int file_of(std::string_view text) {
    const int number = ::memfd_create("weft", MFD_CLOEXEC);
    EXPECT_EQ(::write(number, text.data(), text.size()), static_cast<::ssize_t>(text.size()));
    EXPECT_EQ(::lseek(number, 0, SEEK_SET), 0);
    return number;
}

// Replaces a standard stream until the end of its scope. It owns the descriptor that it is given.
class in_place_of {
public:
    in_place_of(int number, int what)
        : number_(number), before_(::fcntl(number, F_DUPFD_CLOEXEC, 3)) {
        EXPECT_EQ(::dup2(what, number), number);
        ::close(what);
    }
    in_place_of(const in_place_of&) = delete;
    ~in_place_of() {
        ::dup2(before_, number_);
        ::close(before_);
    }

private:
    int number_;
    int before_;
};

// What comes next to a socket of messages.
template <class Socket>
std::string next_of(Socket& s) {
    std::string b(100, 0);
    const auto r = s.recv(room(b));
    return r ? b.substr(0, r->bytes) : r.error().message();
}

}  // namespace weft::testing

#define INSTANTIATE_ON_DRIVERS(suite)                                                      \
    INSTANTIATE_TEST_SUITE_P(on, suite, ::testing::ValuesIn(weft::testing::all_drivers()), \
                             [](const auto& i) { return weft::testing::name_of(i.param); })
