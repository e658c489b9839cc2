// io_request: one system call that may have to wait, as data: to be made here and now, to be
// submitted to the system, or to be made by a thread that may block.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "weft/base/detail/list.hpp"
#include "weft/base/platform.hpp"
#include "weft/io/detail/descriptor.hpp"

namespace weft::detail {

class prefetched_accepts;
class buffer_pool;

// What one call sends of a file.
struct file_part {
    descriptor_ref from;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
};

// What one call moves between a socket and a nonblocking pipe.
struct splice_part {
    int pipe = -1;  // the end of the pipe that the bytes go to or come from
    std::size_t bytes = 0;
};

struct io_request {
    enum kind : std::uint8_t {
        receive,          // recv: data, bytes
        send,             // send: data, bytes
        read,             // of anything but a socket
        write,            //
        receive_message,  // recvmsg: message
        send_message,     // sendmsg: message
        // sendmsg to a local socket. io_uring takes the bytes at its first try, and when it tries
        // again, once there is room, sends an empty message (Linux 6.18).
        send_message_here,
        receive_many,  // recvmmsg: a receive_batch
        send_many,     // sendmmsg: a send_batch
        accept,        // accept4: ahead
        connect,       // connect: data is the address, bytes its length
        poll,          // no call: only waits; result: the flags that are set
        step,          // no call and no wait: the operation goes on by itself; result: one
        // On a file, which is always ready; these calls block the caller (file.hpp).
        read_at,     // pread, preadv: data, bytes, offset
        write_at,    // pwrite, pwritev: the same
        sync,        // fsync
        open,        // open: data is the path, bytes the mode; result: the fd
        size,        // fstat; result: the size
        resize,      // ftruncate: offset
        read_next,   // read, at the file position: data, bytes
        write_next,  // write: the same
        send_file,   // sendfile: data is a file_part
        splice,      // splice: data is a splice_part; from the socket if `reads`
    };

    kind what = poll;
    bool reads = true;        // whether it waits to read, or to write
    bool also_reads = false;  // of a step that waits to write: or to read, whichever comes first
    bool under_way = false;   // a completion driver has it
    bool begun = false;       // connect: in progress
    bool poll_first = false;  // a completion driver waits first until the call can be made
    bool borrows = false;     // receive, read: into a driver's buffer, chosen when data has come
    bool several = false;     // readv, writev and similar: data is a msghdr, with buffers
    bool given = false;       // a completion driver has it, or had it last
    int flags = 0;
    descriptor_ref of;
    void* data = nullptr;  // or msghdr, or address
    std::size_t bytes = 0;
    union {
        prefetched_accepts* ahead = nullptr;  // the listener's, if a driver may accept ahead for it
        std::uint64_t offset;
        buffer_pool* lender;   // pool of the buffer in data; data is null while there is none
        io_wait_node* second;  // the node among the readers, if it also reads
    };
    std::int64_t result = 0;  // of the last call: at least zero, or -errno
    waiter* owner = nullptr;
    io_driver* driver = nullptr;  // the driver that has it, while it is under way

    io_request() noexcept = default;
    io_request(kind k, bool to_read, const descriptor_ref& d, void* at, std::size_t n) noexcept
        : what(k), reads(to_read), of(d), data(at), bytes(n) {}

    // Whether it can be submitted to a completion driver. Descriptors other than sockets are waited
    // for by readiness with every driver, and so are calls that such a driver has no request for.
    bool can_be_given() const noexcept {
        constexpr unsigned not_so = 1u << send_message_here | 1u << receive_many | 1u << send_many |
                                    1u << read | 1u << write | 1u << poll | 1u << step |
                                    1u << open | 1u << size | 1u << resize | 1u << read_next |
                                    1u << write_next | 1u << send_file | 1u << splice;
        return (not_so >> what & 1u) == 0;
    }
    bool sends() const noexcept { return what == send || what == send_message; }
    // Whether it reads or writes a file at its file position.
    bool goes_on() const noexcept { return what == read_next || what == write_next; }
    // The flags of io_entry for which the call is worth making.
    std::uint64_t awaits() const noexcept {
        if (what == poll && (flags & POLLPRI) != 0) [[unlikely]]
            return io_entry::urgent | ((flags & POLLIN) != 0 ? io_entry::readable : 0);
        static_assert(io_entry::readable == 1);
        return (reads ? io_entry::readable : io_entry::writable) | std::uint64_t{also_reads};
    }

    // A hint: whether it is known that the call would find nothing. Precondition: it has a
    // descriptor.
    bool is_unready() const noexcept { return of.entry().is_unready(of.generation(), awaits()); }

    // Makes the call, which does not wait, unless it is on a file. At least zero, or -errno.
    std::int64_t perform() noexcept;

    // The same, if the descriptor is ready for it as far as its entry knows. -EAGAIN: it is not;
    // was_closed.
    static constexpr std::int64_t was_closed = io_entry::was_closed;
    // A value that no system call returns: the queue of a local listener is full, and there is no
    // event for the end of that.
    static constexpr int queue_is_full = EXFULL;
    WEFT_ALWAYS_INLINE std::int64_t try_now() noexcept {
        return of.entry().try_call(of.generation(), awaits(), bytes, [this] { return perform(); });
    }
    // The same, whatever the entry knows, if no driver watches it.
    std::int64_t try_anyway() noexcept;

    // Gives a borrowed buffer back.
    void release_buffer() noexcept;

    // Called by the driver: the result has come with a buffer, which is kept only if it holds
    // bytes.
    void complete_with(buffer_pool& from, std::byte* buffer, std::int64_t n) noexcept;
    // Called by the driver: the result has come. The operation may be destroyed after this.
    void complete(std::int64_t n) noexcept {
        io_entry& e = of.entry();
        result = n;
        under_way = false;
        if (owner != nullptr && owner->claim()) owner->wake_in_order();
        e.leave();  // it was a user since it was submitted
    }

private:
    void borrow(buffer_pool& from, std::byte* buffer) noexcept;
    std::int64_t perform_rarely(int number) noexcept;
    std::int64_t perform_lent() noexcept;
    std::int64_t perform_several(int number) const noexcept;
    std::int64_t perform_several_at(int number) const noexcept;
};

}  // namespace weft::detail
