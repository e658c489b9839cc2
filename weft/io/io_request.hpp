// io_request: one system call that may have to wait, as data: to be made here and now, to be given
// to the system, or to be made by a thread that may wait.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "weft/base/list.hpp"
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

    std::uint64_t flag() const noexcept { return reads ? io_entry::readable : io_entry::writable; }

    // Makes the call, which does not wait, unless it is of a file. At least zero, or -errno.
    std::int64_t perform() noexcept;

    // The same if the descriptor is ready for it, as far as its entry knows. -EAGAIN: it is not;
    // was_closed.
    static constexpr std::int64_t was_closed = INT64_MIN;
    std::int64_t try_now() noexcept;
    // The same whatever its entry knows, where nobody watches it.
    std::int64_t try_anyway() noexcept;

    // A buffer of the lender's, and back again.
    void borrow(receive_buffers& from, std::byte* buffer) noexcept;
    void give_back() noexcept;

    // By the driver: the result has come. Its operation may be gone after this.
    void complete(std::int64_t n) noexcept {
        io_entry& e = of.entry();
        result = n;
        under_way = false;
        if (owner != nullptr && owner->claim()) owner->wake_in_order();
        e.leave(0, 0);  // it was a user since it was submitted
    }

private:
    std::int64_t call() noexcept;
};

}  // namespace weft::detail
