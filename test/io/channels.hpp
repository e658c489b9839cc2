// channels: every kind of descriptor that bytes come from, as one row each, for laws of all of
// them.
//
// Design: the near end is weft's and is the subject of the law; the far end is the test's, made of
// plain system calls. A kind for which weft has a type is read by that type; any other kind by its
// descriptor, with a wait by fd_watch, and by read(2).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "test/io/way.hpp"
#include "weft/io/fd_watch.hpp"
#include "weft/io/pipe.hpp"
#include "weft/io/udp_socket.hpp"
#include "weft/io/unix_datagram.hpp"
#include "weft/io/unix_seqpacket.hpp"
#include "weft/io/unix_stream.hpp"

namespace weft::testing {

// A descriptor of the test's own.
class plain_fd {
public:
    explicit plain_fd(int number = -1) noexcept : number_(number) {}
    plain_fd(plain_fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    plain_fd& operator=(plain_fd&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~plain_fd() { close(); }
    operator int() const noexcept { return number_; }
    void close() noexcept {
        if (number_ >= 0) ::close(std::exchange(number_, -1));
    }

private:
    int number_;
};

// The end that is weft's.
class near_end {
public:
    virtual ~near_end() = default;
    // In the spelling of an agent that suspends, or of an agent that blocks.
    virtual task<result<std::size_t>> read(suspends, std::span<std::byte> into) = 0;
    virtual task<result<std::size_t>> read(blocks, std::span<std::byte> into) = 0;
    // The same, until it is ready.
    virtual task<result<fd_events>> wait(suspends by, fd_events what, time_point deadline) {
        return wait_by(by, what, deadline);
    }
    virtual task<result<fd_events>> wait(blocks by, fd_events what, time_point deadline) {
        return wait_by(by, what, deadline);
    }
    virtual int number() const = 0;
    virtual void close() = 0;
    // The error of a waiter when the end is closed, and of a later caller.
    virtual std::error_code closed() const { return errc::closed; }

private:
    template <class Wait>
    task<result<fd_events>> wait_by(Wait by, fd_events what, time_point deadline) {
        const fd_watch w(number());
        co_return co_await by(w.async_wait(what, deadline));
    }
};

// By the type that it has.
template <class T>
class typed_end final : public near_end {
public:
    explicit typed_end(T of) : of_(std::move(of)) {}
    task<result<std::size_t>> read(suspends, std::span<std::byte> into) override {
        if constexpr (has_messages)
            co_return bytes_of_message(co_await of_.async_recv(into));
        else
            co_return co_await of_.async_read(into);
    }
    task<result<std::size_t>> read(blocks, std::span<std::byte> into) override {
        if constexpr (has_messages)
            co_return bytes_of_message(of_.recv(into));
        else
            co_return of_.read(into);
    }
    int number() const override { return of_.native_handle(); }
    void close() override { of_.close(); }

private:
    static constexpr bool has_messages = requires(T t, std::span<std::byte> b) { t.recv(b); };
    // The end of messages is an error, as an empty one is none.
    static result<std::size_t> bytes_of_message(const result<recv_result>& r) {
        if (r.error() == errc::unexpected_eof) return std::size_t{0};
        if (!r) return failure(r.error());
        return r->bytes;
    }

    T of_;
};

// By its descriptor.
class watched_end final : public near_end {
public:
    explicit watched_end(int number) : owned_(number), watch_(number) {
        ::fcntl(owned_, F_SETFL, ::fcntl(owned_, F_GETFL) | O_NONBLOCK);
    }
    task<result<std::size_t>> read(suspends wait, std::span<std::byte> into) override {
        return read_by(wait, into);
    }
    task<result<std::size_t>> read(blocks wait, std::span<std::byte> into) override {
        return read_by(wait, into);
    }
    int number() const override { return owned_; }
    void close() override { FAIL() << "it is the caller's"; }

private:
    template <class Wait>
    task<result<std::size_t>> read_by(Wait wait, std::span<std::byte> into) {
        for (;;) {
            const ::ssize_t n = ::read(owned_, into.data(), into.size());
            if (n >= 0) co_return static_cast<std::size_t>(n);
            if (errno != EAGAIN) co_return failure(std::error_code(errno, std::system_category()));
            const auto come = co_await wait(watch_.async_wait(fd_events::read));
            if (!come) co_return failure(come.error());
        }
    }

    plain_fd owned_;
    fd_watch watch_;
};

struct channel {
    std::unique_ptr<near_end> near;
    // Makes it readable, the i-th time; what is to be read of that. Where the bytes are the
    // system's, only their count matters.
    std::function<std::string(int i)> feed;
    std::function<void()> end = nullptr;  // of the far end; null: there is none that can
    std::shared_ptr<plain_fd> far = {};   // sees that the near end is closed
    bool bytes_count = true;              // what is read is what was fed; else how much it is
    int error_at_end = 0;                 // zero: the end of a stream
};

struct channel_kind {
    const char* name;
    channel (*open)();
    bool is_weft_s = true;  // it has a type, and weft closes it
    // A close notifies each loop that waits for readiness, and not only the loops that read.
    bool close_tells_waits = true;
    bool has_end = is_weft_s;  // its far end can end it
};

inline std::string line_of(int i) { return "line " + std::to_string(i) + "\n"; }

// Bytes that are written at a plain descriptor are read.
inline std::function<std::string(int)> writes_lines(std::shared_ptr<plain_fd> at) {
    return [at](int i) {
        const std::string s = line_of(i);
        EXPECT_EQ(::write(*at, s.data(), s.size()), static_cast<::ssize_t>(s.size()));
        return s;
    };
}
template <class T>
channel lines(T near, int far) {
    const auto at = std::make_shared<plain_fd>(far);
    channel c;
    c.near = std::make_unique<typed_end<T>>(std::move(near));
    c.feed = writes_lines(at);
    c.end = [at] { at->close(); };
    c.far = at;
    return c;
}

inline void make_raw(int terminal) {
    ::termios t{};
    EXPECT_EQ(::tcgetattr(terminal, &t), 0);
    ::cfmakeraw(&t);
    EXPECT_EQ(::tcsetattr(terminal, TCSANOW, &t), 0);
}

// A terminal delivers one line of text to each read, however large the buffer is.
inline channel open_tty() {
    int master = -1;
    int slave = -1;
    EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    channel c = lines(pipe_reader::adopt(slave).value(), master);
    return c;
}
inline channel open_pty() {
    int master = -1;
    int slave = -1;
    EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    make_raw(slave);
    return lines(pipe_reader::adopt(master).value(), slave);
}
inline channel open_pipe() {
    int n[2];
    EXPECT_EQ(::pipe2(n, O_CLOEXEC), 0);
    return lines(pipe_reader::adopt(n[0]).value(), n[1]);
}
// Each write is a packet, and a read returns one.
inline channel open_packet_pipe() {
    int n[2];
    EXPECT_EQ(::pipe2(n, O_CLOEXEC | O_DIRECT), 0);
    return lines(pipe_reader::adopt(n[0]).value(), n[1]);
}
inline channel open_fifo() {
    const std::string path = ::testing::TempDir() + "weft.fifo." + std::to_string(::getpid());
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const int reads = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int writes = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    ::unlink(path.c_str());
    return lines(pipe_reader::adopt(reads).value(), writes);
}
inline channel open_unix_stream() {
    int n[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, n), 0);
    return lines(unix_stream::adopt(n[0]).value(), n[1]);
}
// A connection that the test has the far end of.
inline std::pair<tcp_stream, plain_fd> half_of_tcp() {
    tcp_listener l = any_listener();
    const endpoint to = l.local_endpoint();
    plain_fd far(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(far, to.data(), to.size()), 0);
    return {l.accept().value(), std::move(far)};
}
inline channel open_tcp() {
    auto [near, far] = half_of_tcp();
    return lines(std::move(near), ::dup(far));
}
inline channel open_udp() {
    udp_socket near = udp_socket::bind("127.0.0.1:0").value();
    const endpoint to = near.local_endpoint();
    const int far = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(far, to.data(), to.size()), 0);
    channel c = lines(std::move(near), far);
    c.end = nullptr;
    c.far = nullptr;
    return c;
}
inline channel open_datagrams() {
    int n[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, n), 0);
    channel c = lines(unix_datagram::adopt(n[0]).value(), n[1]);
    c.end = nullptr;
    c.far = nullptr;
    return c;
}
inline channel open_seqpacket() {
    int n[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, n), 0);
    return lines(unix_seqpacket::adopt(n[0]).value(), n[1]);
}

// Those of the system have no far end.
inline channel of_the_system(int number, std::size_t bytes, std::function<void(int number)> feed) {
    channel c;
    c.near = std::make_unique<watched_end>(number);
    c.feed = [number, bytes, feed](int) {
        feed(number);
        return std::string(bytes, 0);
    };
    c.bytes_count = false;
    return c;
}
// One read takes all that was added.
inline channel open_eventfd() {
    return of_the_system(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE), sizeof(::eventfd_t),
                         [](int n) { EXPECT_EQ(::eventfd_write(n, 1), 0); });
}
// Setting a timerfd again drops an expiration that was not read. So it is set only after the read
// of the last one, and the call returns when it has expired.
inline channel open_timerfd() {
    const int number = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return of_the_system(number, sizeof(std::uint64_t), [](int n) {
        const auto end = steady_now() + crew::patience;
        pollfd unread{n, POLLIN, 0};
        while (::poll(&unread, 1, 0) == 1 && steady_now() < end) ::usleep(50);
        ::itimerspec left = {{}, {0, 1}};
        EXPECT_EQ(::timerfd_settime(n, 0, &left, nullptr), 0);
        while (left.it_value.tv_nsec != 0 && steady_now() < end) ::timerfd_gettime(n, &left);
    });
}
// A signal that was not read would end a test that unblocks it later.
class taken_signals {
public:
    explicit taken_signals(int number) {
        ::sigemptyset(&all_);
        ::sigaddset(&all_, number);
    }
    taken_signals(const taken_signals&) = delete;
    ~taken_signals() {
        const ::timespec at_once = {};
        while (::sigtimedwait(&all_, nullptr, &at_once) > 0) {
        }
    }
    const ::sigset_t* all() const { return &all_; }

private:
    ::sigset_t all_;
};
inline channel open_signalfd() {
    constexpr int after_first = 3;
    const auto taken = std::make_shared<taken_signals>(SIGRTMIN + after_first);
    // A signal of the process: it is pending for every thread that blocks it, and no other thread
    // takes it.
    return of_the_system(
        ::signalfd(-1, taken->all(), SFD_CLOEXEC), sizeof(::signalfd_siginfo),
        [taken](int) { EXPECT_EQ(::sigqueue(::getpid(), SIGRTMIN + after_first, {}), 0); });
}
inline channel open_inotify() {
    const std::string folder = ::testing::TempDir() + "weft.watched." + std::to_string(::getpid());
    ::mkdir(folder.c_str(), 0700);
    const int n = ::inotify_init1(IN_CLOEXEC);
    EXPECT_GE(::inotify_add_watch(n, folder.c_str(), IN_CREATE), 0);
    const auto made = std::make_shared<int>(0);
    // The name of a file takes sixteen bytes, padded.
    channel c = of_the_system(n, sizeof(::inotify_event) + 16, [folder, made](int) {
        const std::string file = folder + "/" + std::to_string(++*made);
        plain_fd(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).close();
        ::unlink(file.c_str());
    });
    return c;
}

inline constexpr channel_kind channel_kinds[] = {
    {"pty", open_pty},
    {"pipe", open_pipe},
    {"fifo", open_fifo},
    {"unix_stream", open_unix_stream},
    {"tcp", open_tcp},
    {"udp", open_udp, true, true, false},
    {"unix_datagram", open_datagrams, true, true, false},
    {"unix_seqpacket", open_seqpacket},
    {"eventfd", open_eventfd, false},
    {"timerfd", open_timerfd, false},
    {"signalfd", open_signalfd, false},
    {"inotify", open_inotify, false},
    {"tty", open_tty},
    {"packet_pipe", open_packet_pipe},
};

// A kind of descriptor and a way to wait for it.
using channel_by = std::tuple<channel_kind, way>;

class on_each_channel : public ::testing::TestWithParam<channel_by> {
protected:
    void SetUp() override { WEFT_SKIP_IF_NOT_HERE(way()); }
    channel open() const { return std::get<0>(GetParam()).open(); }
    const channel_kind& what() const { return std::get<0>(GetParam()); }
    const weft::testing::way& way() const { return std::get<1>(GetParam()); }
};

// Of a row, whatever it is of, and a way.
inline constexpr auto name_of_channel = [](const auto& i) {
    return std::get<0>(i.param).name + ("_by_" + name_of(std::get<1>(i.param)));
};

// Those of the kinds for which a law holds, by each of the ways.
template <class Wanted>
std::vector<channel_by> channel_cases(std::span<const channel_kind> kinds,
                                      std::span<const way> ways, Wanted wanted) {
    std::vector<channel_by> all;
    for (const channel_kind& k : kinds)
        for (const way& w : ways)
            if (wanted(k)) all.emplace_back(k, w);
    return all;
}

}  // namespace weft::testing

#define INSTANTIATE_ON_CHANNELS(suite, kinds, ways)                                           \
    INSTANTIATE_TEST_SUITE_P(                                                                 \
        of, suite, ::testing::Combine(::testing::ValuesIn(kinds), ::testing::ValuesIn(ways)), \
        weft::testing::name_of_channel)
