// net_bare_uring PORT: an echo server that is nothing but its rings, the reference for a library
// over io_uring.
//
// A connection has one operation in progress: a recv, then the send of the received bytes. One
// system call submits the operations of many connections, and also waits. The ring belongs to one
// thread and does its work when that thread asks (SINGLE_ISSUER, DEFER_TASKRUN), if the kernel
// supports that.

#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "bench/net/sockets.hpp"

namespace {

using namespace bench::net;

constexpr unsigned submissions = 4096;
constexpr unsigned completions = 32'768;  // more than there are connections

// Invariant: [begin, end) of buffer is what was received and not yet sent; while it is empty, a
// recv is under way, else a send.
struct connection {
    explicit connection(int socket) noexcept : fd(socket) {}

    int fd;
    unsigned begin = 0;
    unsigned end = 0;
    char buffer[buffer_bytes];
};

class server {
public:
    explicit server(int listener) : listener_(listener) {
        open_ring();
        accept();
    }

    void run() {
        for (;;) {
            const int n = io_uring_submit_and_wait(&ring_, 1);
            if (n < 0 && n != -EINTR) fail("io_uring_submit_and_wait", n);
            unsigned head = 0;
            unsigned seen = 0;
            io_uring_cqe* cqe = nullptr;
            io_uring_for_each_cqe(&ring_, head, cqe) {
                ++seen;
                auto* const c = static_cast<connection*>(io_uring_cqe_get_data(cqe));
                c == nullptr ? accepted(*cqe) : moved(*c, cqe->res);
            }
            io_uring_cq_advance(&ring_, seen);
        }
    }

private:
    [[noreturn]] static void fail(const char* what, int negative_error) {
        errno = -negative_error;
        die(what);
    }

    void open_ring() {
        int error = -EINVAL;
        for (const unsigned flags : {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                                     IORING_SETUP_COOP_TASKRUN, 0u}) {
            io_uring_params how{};
            how.flags = flags | IORING_SETUP_CQSIZE;
            how.cq_entries = completions;
            error = io_uring_queue_init_params(submissions, &ring_, &how);
            if (error != -EINVAL) break;
        }
        if (error < 0) fail("io_uring", error);
        io_uring_register_ring_fd(&ring_);
    }

    io_uring_sqe& entry() {
        io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
        while (sqe == nullptr) {
            io_uring_submit(&ring_);
            sqe = io_uring_get_sqe(&ring_);
        }
        return *sqe;
    }

    // Once for all connections; the kernel reports when the accept has to be submitted again.
    void accept() {
        io_uring_sqe& sqe = entry();
        io_uring_prep_multishot_accept(&sqe, listener_, nullptr, nullptr, SOCK_CLOEXEC);
        io_uring_sqe_set_data(&sqe, nullptr);
    }

    void accepted(const io_uring_cqe& cqe) {
        if (cqe.res >= 0) {
            set_no_delay(cqe.res);
            next(*new connection(cqe.res));
        } else if (cqe.res != -ECONNABORTED && cqe.res != -EINTR) {
            fail("accept", cqe.res);
        }
        if ((cqe.flags & IORING_CQE_F_MORE) == 0) accept();
    }

    // The operation under way moved so many bytes.
    void moved(connection& c, int result) {
        if (result <= 0 && result != -EINTR && result != -EAGAIN) {
            close(c.fd);
            delete &c;
            return;
        }
        const unsigned bytes = result > 0 ? static_cast<unsigned>(result) : 0;
        (c.begin < c.end ? c.begin : c.end) += bytes;
        if (c.begin == c.end) c.begin = c.end = 0;
        next(c);
    }

    void next(connection& c) {
        io_uring_sqe& sqe = entry();
        if (c.begin < c.end) {
            io_uring_prep_send(&sqe, c.fd, c.buffer + c.begin, c.end - c.begin, MSG_NOSIGNAL);
        } else {
            io_uring_prep_recv(&sqe, c.fd, c.buffer, sizeof c.buffer, 0);
        }
        io_uring_sqe_set_data(&sqe, &c);
    }

    int listener_;
    io_uring ring_{};
};

}  // namespace

int main(int argc, char** argv) {
    const std::uint16_t port = port_argument(argc, argv);
    raise_file_limit();
    server s(listen_on(port));
    say_ready();
    s.run();
}
