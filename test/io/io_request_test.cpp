#include "weft/io/detail/io_request.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <latch>
#include <thread>

#include "weft/io/detail/buffer_pool.hpp"
#include "weft/io/owned_number.hpp"

namespace {

using weft::detail::buffer_pool;
using weft::detail::descriptor;
using weft::detail::descriptor_ref;
using weft::detail::io_request;

// A driver that completes calls need not hold back a buffer when there is nothing to put in it:
// some systems report the end, or an error, with a buffer.
TEST(io_request, keeps_a_provided_buffer_only_if_it_has_bytes) {
    std::error_code error;
    const descriptor owned(
        descriptor_ref::adopt(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), 0, error));
    auto* const lender = new buffer_pool;
    for (const std::int64_t n : {5, 0, -ECONNRESET}) {
        io_request r(io_request::receive, true, owned.ref(), nullptr, 0);
        r.borrows = r.under_way = true;
        ASSERT_TRUE(r.of.entry().enter(r.of.generation())) << "as one that was submitted";
        r.complete_with(*lender, lender->take(), n);
        EXPECT_EQ(r.result, n);
        EXPECT_FALSE(r.under_way);
        EXPECT_EQ(r.data != nullptr, n > 0);
        EXPECT_EQ(lender->out_count(), n > 0 ? 1u : 0u) << n;
        if (n > 0) r.release_buffer();
    }
    EXPECT_EQ(lender->out_count(), 0u);
    lender->release();
}

// Runs within a call of the function of that name.
std::function<void()> in_splice;
std::function<void()> in_sendfile;

bool blocks(int number) { return (::fcntl(number, F_GETFL) & O_NONBLOCK) == 0; }

// O_NONBLOCK is the socket's, and the two directions of one socket are two threads' affair.
TEST(io_request, keeps_the_socket_nonblocking_while_another_request_needs_it) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const weft::owned_number far(pair[1]);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    const weft::owned_number outlet(ends[0]);
    const weft::owned_number inlet(ends[1]);
    std::error_code error;
    const descriptor socket(descriptor_ref::adopt(pair[0], 0, error));
    const descriptor file(descriptor_ref::adopt(::memfd_create("weft", MFD_CLOEXEC), 0, error));
    ASSERT_TRUE(socket && file);

    std::latch reads(1);
    std::latch sends(1);
    std::latch has_read(1);
    in_splice = [&] {
        reads.count_down();
        sends.wait();
    };
    in_sendfile = [&] {
        sends.count_down();
        has_read.wait();
        EXPECT_FALSE(blocks(pair[0])) << "it would wait now";
    };
    std::thread reader([&] {
        weft::detail::splice_part part = {inlet.get(), 100};
        io_request r(io_request::splice, true, socket.ref(), &part, 0);
        EXPECT_EQ(r.perform(), -EAGAIN);
        has_read.count_down();
    });
    reads.wait();
    weft::detail::file_part part = {file.ref(), 0, 100};
    io_request w(io_request::send_file, false, socket.ref(), &part, 0);
    EXPECT_EQ(w.perform(), 0) << "the file is empty";
    reader.join();
    in_splice = in_sendfile = nullptr;
    EXPECT_TRUE(blocks(pair[0])) << "as it was";
}

}  // namespace

// Replaces the C library's.
extern "C" ::ssize_t splice(int from, ::loff_t* from_at, int to, ::loff_t* to_at, std::size_t bytes,
                            unsigned flags) {
    if (in_splice) in_splice();
    return ::syscall(SYS_splice, from, from_at, to, to_at, bytes, flags);
}
extern "C" ::ssize_t sendfile(int to, int from, ::off_t* at,
                              std::size_t bytes) noexcept(noexcept(::sendfile(0, 0, nullptr, 0))) {
    if (in_sendfile) in_sendfile();
    return ::syscall(SYS_sendfile, to, from, at, bytes);
}
