// io_request: one system call that may have to wait, as data: to be made here and now, to be given
// to the system, or to be made by a thread that may wait.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "weft/base/list.hpp"
#include "weft/base/platform.hpp"
#include "weft/io/descriptor.hpp"

namespace weft::detail {

class accept_ahead;
class receive_buffers;

struct io_request {
    enum kind : std::uint8_t {
        receive,          // recv: data, bytes
        send,             // send: data, bytes
        read,             // of what is no socket
        write,            //
        receive_message,  // recvmsg: message
        send_message,     // sendmsg: message
        accept,           // accept4: ahead
        connect,          // connect: data is the address, bytes its length
        poll,             // nothing: only waits; result: the flags that are set
        step,             // nothing, not even that: the operation goes on by itself; result: one
        // Of a file, which is always ready; these keep who makes them waiting (file.hpp).
        read_at,   // pread: data, bytes, offset
        write_at,  // pwrite: the same
        sync,      // fsync
        open,      // open: data is the path, bytes the mode; result: the number
        size,      // of fstat
        resize,    // ftruncate: offset
    };

    kind what = poll;
    bool reads = true;        // whether it waits to read, or to write
    bool under_way = false;   // given to a driver that completes
    bool begun = false;       // connect: is in progress
    bool poll_first = false;  // what completes calls waits until this one can be made
    bool borrows = false;     // receive, read: into a buffer that is lent when something has come
    int flags = 0;
    descriptor_ref of;
    void* data = nullptr;  // or msghdr, or address
    std::size_t bytes = 0;
    union {
        accept_ahead* ahead = nullptr;  // that the listener has, if it may be served so
        std::uint64_t offset;
        receive_buffers* lender;  // of data, which is null while nothing is lent
    };
    std::int64_t result = 0;  // of the last call: at least zero, or -errno
    waiter* owner = nullptr;
    io_driver* driver = nullptr;  // that has it, if it is under way

    io_request() noexcept = default;
    io_request(kind k, bool to_read, const descriptor_ref& d, void* at, std::size_t n) noexcept
        : what(k), reads(to_read), of(d), data(at), bytes(n) {}

    // Whether to a driver that completes; what is no socket is waited for by readiness with each.
    bool can_be_given() const noexcept {
        constexpr unsigned not_so = 1u << read | 1u << write | 1u << poll | 1u << step |
                                    1u << open | 1u << size | 1u << resize;
        return (not_so >> what & 1u) == 0;
    }
    std::uint64_t flag() const noexcept { return reads ? io_entry::readable : io_entry::writable; }

    // A glance: whether it is known that the call would find nothing. It has a descriptor.
    bool is_unready() const noexcept { return of.entry().is_unready(of.generation(), flag()); }

    // Makes the call, which does not wait, unless it is of a file. At least zero, or -errno.
    std::int64_t perform() noexcept;

    // The same if the descriptor is ready for it, as far as its entry knows. -EAGAIN: it is not;
    // was_closed.
    static constexpr std::int64_t was_closed = INT64_MIN;
    WEFT_ALWAYS_INLINE std::int64_t try_now() noexcept {
        io_entry& e = of.entry();
        for (;;) {
            if (is_unready()) return -EAGAIN;
            std::uint64_t seen;
            if (!e.enter(of.generation(), seen)) return was_closed;
            const std::int64_t n = perform();
            const bool all = n > 0 && (seen & io_entry::stream) != 0 &&
                             (seen & io_entry::ended) == 0 && static_cast<std::size_t>(n) < bytes;
            e.leave(seen, n == -EAGAIN || all ? flag() : 0);
            if (n != -EAGAIN && n != -EINTR) return n;  // else an event may have come meanwhile
        }
    }
    // The same whatever its entry knows, where nobody watches it.
    std::int64_t try_anyway() noexcept;

    // A buffer that was lent goes back.
    void give_back() noexcept;

    // By the driver: the result has come, and with it a buffer, which is kept for its bytes alone.
    void complete_with(receive_buffers& from, std::byte* buffer, std::int64_t n) noexcept;
    // By the driver: the result has come. Its operation may be gone after this.
    void complete(std::int64_t n) noexcept {
        io_entry& e = of.entry();
        result = n;
        under_way = false;
        if (owner != nullptr && owner->claim()) owner->wake_in_order();
        e.leave(0, 0);  // it was a user since it was submitted
    }

private:
    void borrow(receive_buffers& from, std::byte* buffer) noexcept;
    std::int64_t perform_lent() noexcept;
};

}  // namespace weft::detail
