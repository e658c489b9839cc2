// weft_zero_copy [ROUNDS]: the cost of sending a MiB over TCP, in processor time of the sending
// process, by calls that copy and by calls that share their pages with the system: whether
// zero-copy sends are worth an option of weft's streams here.
//
//   send            send(2)                    MSG_ZEROCOPY   the same with the flag; its
//   SEND            IORING_OP_SEND                            notifications from the error queue
//   SEND_ZC         IORING_OP_SEND_ZC          fixed          the same from a registered buffer
//
// Over loopback, and over a veth pair between two network namespaces, which end with the processes
// in them. The receiver drops the bytes without a copy. With both on one core, the sum of both is
// printed: the cost of the transfer, whichever process is charged for the system's part. On two
// cores, each is printed: a saving of one may be a cost of the other. A buffer is reused only when
// the system has released it; all ways send from the same 4 MiB in turn. "copied" is printed if the
// system reports that it has copied nevertheless. No bar. Exit status: 0, or 2 for bad input. If
// namespaces are refused, the program prints so and measures loopback alone.

#include <arpa/inet.h>
#include <liburing.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <string>
#include <vector>

#include "bench/net/sockets.hpp"
#include "bench/net/trial.hpp"

namespace {

using bench::net::die;
using bench::net::server_child;

constexpr std::size_t pool_bytes = 4 << 20;
constexpr std::size_t measured_bytes = 64 << 20;
constexpr std::array<std::size_t, 5> sizes = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
constexpr const char* ways[] = {"send", "MSG_ZEROCOPY", "SEND", "SEND_ZC", "fixed"};
constexpr std::size_t way_count = std::size(ways);

std::byte* pool() {
    static std::byte* const at = [] {
        void* const p = ::mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (p == MAP_FAILED) die("mmap");
        return static_cast<std::byte*>(p);
    }();
    return at;
}

double cpu_us() {
    ::timespec t;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

// The calls that share their pages, numbered from one, and how many the system has reported as
// complete. TCP releases the pages in the order of the calls.
struct loans {
    std::uint32_t made = 0;
    std::uint32_t through = 0;
    bool copied = false;
};

class plain_sender {
public:
    plain_sender(int fd, bool lends) : fd_(fd), flags_(lends ? MSG_ZEROCOPY : 0) {
        const int on = 1;
        if (lends && ::setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0)
            die("SO_ZEROCOPY");
    }
    void send(const std::byte* from, std::size_t bytes) {
        while (bytes > 0) {
            const ssize_t n = ::send(fd_, from, bytes, flags_ | MSG_NOSIGNAL);
            if (n < 0 && errno == ENOBUFS && loans_.through < loans_.made) {
                await(loans_.through + 1);
                continue;
            }
            if (n <= 0) die("send");
            if (flags_ != 0) ++loans_.made;
            from += n;
            bytes -= static_cast<std::size_t>(n);
        }
        // Not after each call, as in a server that reads the error queue when its loop reports it.
        if (flags_ != 0 && loans_.made % 8 == 0) look();
    }
    // Waits until `count` calls are complete.
    void await(std::uint32_t count) {
        while (loans_.through < count) {
            ::pollfd p = {fd_, 0, 0};  // poll always reports errors
            if (::poll(&p, 1, 5000) <= 0) die("no notification has come");
            look();
        }
    }
    const loans& lent() const noexcept { return loans_; }

private:
    void look() {
        alignas(::cmsghdr) std::array<char, 128> room;
        for (;;) {
            ::msghdr m{};
            m.msg_control = room.data();
            m.msg_controllen = room.size();
            if (::recvmsg(fd_, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
                if (errno != EAGAIN) die("the error queue");
                return;
            }
            const ::cmsghdr* const c = CMSG_FIRSTHDR(&m);
            if (c == nullptr || c->cmsg_level != SOL_IP || c->cmsg_type != IP_RECVERR) continue;
            const auto& e = *reinterpret_cast<const ::sock_extended_err*>(CMSG_DATA(c));
            if (e.ee_origin != SO_EE_ORIGIN_ZEROCOPY) continue;
            loans_.through += e.ee_data - e.ee_info + 1;
            loans_.copied |= (e.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0;
        }
    }

    const int fd_;
    const int flags_;
    loans loans_;
};

// One call at a time, in order, as a stream has it.
class ring_sender {
public:
    ring_sender(int fd, bool lends, bool fixed) : fd_(fd), lends_(lends), fixed_(fixed) {
        ::io_uring_params p{};
        p.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
        if (const int r = ::io_uring_queue_init_params(64, &ring_, &p); r != 0) refuse(-r);
        ::io_uring_register_ring_fd(&ring_);
        const ::iovec all = {pool(), pool_bytes};
        if (fixed)
            if (const int r = ::io_uring_register_buffers(&ring_, &all, 1); r != 0) refuse(-r);
    }
    ring_sender(const ring_sender&) = delete;
    ~ring_sender() { ::io_uring_queue_exit(&ring_); }

    void send(const std::byte* from, std::size_t bytes) {
        while (bytes > 0) {
            ::io_uring_sqe& s = *::io_uring_get_sqe(&ring_);
            ::io_uring_prep_send(&s, fd_, from, bytes, MSG_WAITALL | MSG_NOSIGNAL);
            if (lends_) {
                s.opcode = IORING_OP_SEND_ZC;
                s.ioprio = report_usage | (fixed_ ? IORING_RECVSEND_FIXED_BUF : 0);
            }
            sent_ = 0;
            while (sent_ == 0) collect();
            from += sent_;
            bytes -= sent_;
        }
    }
    void await(std::uint32_t count) {
        while (loans_.through < count) collect();
    }
    const loans& lent() const noexcept { return loans_; }

private:
    // Missing in the headers of Debian 12.
    static constexpr std::uint16_t report_usage = 1 << 3;
    static constexpr std::uint32_t usage_copied = 1u << 31;

    [[noreturn]] static void refuse(int error) {
        errno = error;
        die("io_uring");
    }
    void collect() {
        if (const int r = ::io_uring_submit_and_wait(&ring_, 1); r < 0) refuse(-r);
        ::io_uring_cqe* c = nullptr;
        while (::io_uring_peek_cqe(&ring_, &c) == 0) {
            if ((c->flags & IORING_CQE_F_NOTIF) != 0) {
                ++loans_.through;
                loans_.copied |= (static_cast<std::uint32_t>(c->res) & usage_copied) != 0;
            } else {
                if (c->res <= 0) refuse(-c->res);
                sent_ = static_cast<std::size_t>(c->res);
                if ((c->flags & IORING_CQE_F_MORE) != 0) ++loans_.made;
            }
            ::io_uring_cqe_seen(&ring_, c);
        }
    }

    const int fd_;
    const bool lends_;
    const bool fixed_;
    std::size_t sent_ = 0;
    loans loans_;
    ::io_uring ring_;
};

struct figure {
    double sender_us = 0;  // a MiB
    double receiver_us = 0;
    bool copied = false;
};

// Waits for the receiver's end of stream, which means that all has been received.
void await_end(int fd) {
    if (::shutdown(fd, SHUT_WR) != 0) die("shutdown");
    char nothing;
    if (::recv(fd, &nothing, 1, 0) != 0) die("the receiver has not received all");
}

template <class Sender>
bool send_all(Sender& s, int fd, std::size_t bytes) {
    std::vector<std::uint32_t> loan_of(pool_bytes / bytes);
    for (std::size_t i = 0; i != measured_bytes / bytes; ++i) {
        const std::size_t slot = i % loan_of.size();
        s.await(loan_of[slot]);
        s.send(pool() + slot * bytes, bytes);
        loan_of[slot] = s.lent().made;
    }
    await_end(fd);
    s.await(s.lent().made);
    return s.lent().copied;
}

bool send_by(std::size_t way, int fd, std::size_t bytes) {
    if (way < 2) {
        plain_sender s(fd, way == 1);
        return send_all(s, fd, bytes);
    }
    ring_sender s(fd, way >= 3, way == 4);
    return send_all(s, fd, bytes);
}

figure measure(::in_addr_t to, const server_child& receiver, std::size_t way, std::size_t bytes) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(receiver.port());
    a.sin_addr.s_addr = to;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0) die("connect");
    constexpr double mib = measured_bytes / double{1 << 20};
    const double other = receiver.cpu_us();
    const double began = cpu_us();
    figure f;
    f.copied = send_by(way, fd, bytes);
    f.sender_us = (cpu_us() - began) / mib;
    f.receiver_us = (receiver.cpu_us() - other) / mib;
    ::close(fd);
    return f;
}

// One connection after the other, until it is killed.
void receive(int tell, unsigned core, bool apart) {
    bench::net::pin_to(core);
    if (apart && ::unshare(CLONE_NEWNET) != 0) die("unshare");
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    socklen_t size = sizeof a;
    if (::bind(listener, reinterpret_cast<const sockaddr*>(&a), size) != 0 ||
        ::listen(listener, 1) != 0)
        die("listen");
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&a), &size);
    bench::net::tell_port(tell, ntohs(a.sin_port));
    for (;;) {
        const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) die("accept");
        while (::recv(fd, nullptr, 1 << 20, MSG_TRUNC) > 0) {
        }
        ::close(fd);
    }
}

// ip(8), in the network namespace of that process.
bool ip(pid_t where, const std::string& what) {
    const std::string set = "exec nsenter -t " + std::to_string(where) + " -n ip " + what;
    return std::system(("PATH=$PATH:/usr/sbin:/sbin; " + set).c_str()) == 0;
}

// Moves this process into a namespace of its own, with one end of a pair; the receiver has the
// other end.
bool join(pid_t receiver) {
    const pid_t me = ::getpid();
    return ::unshare(CLONE_NEWNET) == 0 &&
           ip(me, "link add weft0 type veth peer name weft1 netns " + std::to_string(receiver)) &&
           ip(me, "addr add 10.77.0.1/24 dev weft0") && ip(me, "link set weft0 up") &&
           ip(receiver, "addr add 10.77.0.2/24 dev weft1") && ip(receiver, "link set weft1 up");
}

bool may_unshare() {
    const pid_t child = ::fork();
    if (child < 0) die("fork");
    if (child == 0) ::_exit(::unshare(CLONE_NEWNET) == 0 ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0;
}

// The figures of all rounds on one path, in the order of sizes and ways.
struct path {
    const char* name;
    ::in_addr_t to;
    bool apart;
    std::vector<figure> on_one_core{};
    std::vector<figure> on_two{};
};

// False if this machine does not have the path.
bool compare(const path& p, unsigned core, unsigned rounds, std::vector<figure>& all) {
    const server_child receiver([&](int tell) { receive(tell, core, p.apart); });
    bench::net::pin_to(0);
    if (p.apart && !join(receiver.pid())) return false;
    for (unsigned r = 0; r != rounds; ++r)
        for (const std::size_t bytes : sizes)
            for (std::size_t way = 0; way != way_count; ++way)
                all.push_back(measure(p.to, receiver, way, bytes));
    return true;
}

void print(const path& p) {
    const auto of = [](const std::vector<figure>& all, std::size_t at, auto what) {
        std::vector<double> values;
        for (std::size_t i = at; i < all.size(); i += sizes.size() * way_count)
            values.push_back(what(all[i]));
        return bench::net::median(values);
    };
    const auto sent = [](const figure& f) { return f.sender_us; };
    const auto received = [](const figure& f) { return f.receiver_us; };
    const auto both = [](const figure& f) { return f.sender_us + f.receiver_us; };
    for (std::size_t i = 0; i != sizes.size() * way_count; ++i) {
        std::printf("%-8s  %5zu KiB  %-12s  %7.1f  %7.1f + %6.1f  %s\n", p.name,
                    sizes[i / way_count] >> 10, ways[i % way_count], of(p.on_one_core, i, both),
                    of(p.on_two, i, sent), of(p.on_two, i, received),
                    p.on_one_core[i].copied ? "copied" : "");
    }
}

}  // namespace

int main(int argc, char** argv) {
    const unsigned rounds = bench::net::rounds_argument(argc, argv, 9);
    std::array<path, 2> paths = {path{"loopback", htonl(INADDR_LOOPBACK), false},
                                 path{"veth", ::inet_addr("10.77.0.2"), true}};
    std::printf("us a MiB                        one core  two: sender + receiver\n");
    for (path& p : paths) {
        if (p.apart && !may_unshare())
            std::printf("%-8s  network namespaces are refused here\n", p.name);
        else if (!compare(p, 0, rounds, p.on_one_core) || !compare(p, 1, rounds, p.on_two))
            std::printf("%-8s  ip and nsenter can make no pair of interfaces here\n", p.name);
        else
            print(p);
        std::fflush(stdout);
    }
}
