// stream: bytes both ways over a connected socket; the base of tcp_stream and unix_stream.
//
// Design: each operation has two forms. `read(b)` suspends a fiber and blocks a thread;
// `async_read(b)` is an operation for co_await, when_any and similar. Both may end early by a stop
// or a deadline, and the stream's own limits are deadlines as well.
//
//      read         some: at least one byte; zero: the peer has ended        result<size_t>
//      read_borrowed   some, in a driver's buffer, when data came        result<borrowed_buffer>
//      read_exact   all of the buffer, or unexpected_eof                     transfer_result
//      read_until   to a string, until it holds a delimiter                  result<size_t>
//      write        some                                                     result<size_t>
//      write_all    all of it                                                transfer_result
//      send_file    bytes of a file, without copying them                    transfer_result
//      close_gracefully   closes; a peer that still sends can read all       transfer_result
//
// read and write_all take several buffers too, with one system call for each 32 of them; the list
// (a std::array, a std::vector, a span of spans) stays until the operation has ended.
//
// Limits: one reader and one writer at a time; a second one of a kind gets operation_in_progress at
// once. Errors of the system are returned as they are (connection_reset, broken_pipe); SIGPIPE is
// never raised. Any agent may close a stream: waits end with errc::closed. With io_uring the system
// uses the buffer until the operation has ended, and with every driver the next try does: an
// operation is never left before. The destructor closes the stream, as close() does.
//
//   std::array<std::byte, 512> buffer;
//   while (auto n = s.read(buffer).value_or(0))
//       if (!s.write_all(std::span(buffer).first(n))) break;
//
// Model: none, each flag is taken or refused in one exchange, and finds misuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "weft/io/borrowed_buffer.hpp"
#include "weft/io/buffer_list.hpp"
#include "weft/io/detail/socket.hpp"
#include "weft/io/detail/stream_core.hpp"
#include "weft/io/detail/stream_operations.hpp"
#include "weft/io/detail/stream_transfer.hpp"
#include "weft/io/endpoint.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class file;
struct stream_halves;
namespace detail {
class relay_operation;  // relay.hpp
}

// The bytes of a text.
inline std::span<const std::byte> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

// Which direction of a stream.
enum class direction : std::uint8_t { read, write, both };

class stream {
public:
    stream() noexcept = default;  // none
    stream(stream&&) noexcept = default;
    stream& operator=(stream&&) noexcept = default;

    explicit operator bool() const noexcept { return core_ != nullptr; }

    [[nodiscard]] detail::read_transfer_operation async_read(std::span<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::read_exact_operation async_read_exact(
        std::span<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::write_transfer_operation async_write(
        std::span<const std::byte> from) noexcept {
        return {core(), from};
    }
    [[nodiscard]] detail::write_all_transfer_operation async_write_all(
        std::span<const std::byte> from) noexcept {
        return {core(), from};
    }

    [[nodiscard]] detail::read_list_operation async_read(buffers_of<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::write_list_operation async_write_all(
        buffers_of<const std::byte> from) noexcept {
        return {core(), from};
    }

    result<std::size_t> read(std::span<std::byte> into,
                             std::source_location caller = std::source_location::current()) {
        return detail::is_on_shared_stack() ? read_apart(into, caller) : read_here(into, caller);
    }
    result<std::size_t> read(buffers_of<std::byte> into,
                             std::source_location caller = std::source_location::current());
    transfer_result write_all(buffers_of<const std::byte> from,
                              std::source_location caller = std::source_location::current());
    // As read(), into a buffer of the driver (borrowed_buffer.hpp). Empty: the peer has ended.
    [[nodiscard]] detail::read_borrowed_operation async_read_borrowed() noexcept {
        return detail::read_borrowed_operation(core());
    }
    result<borrowed_buffer> read_borrowed(
        std::source_location caller = std::source_location::current());
    transfer_result read_exact(std::span<std::byte> into,
                               std::source_location caller = std::source_location::current());
    // Appends to `text` until it holds the delimiter `mark` ("\r\n"), and returns the length of
    // `text` up to the end of the delimiter; bytes that have come after it stay in `text`, for the
    // next call. message_size: the first `most` bytes have no delimiter. unexpected_eof: the peer
    // has ended before it. What has come without the delimiter is in `text` in any case, also if
    // its memory cannot grow (not_enough_memory).
    [[nodiscard]] detail::read_until_operation async_read_until(std::string& text,
                                                                std::string_view mark,
                                                                std::size_t most = 65536) noexcept {
        return {core(), text, mark, most};
    }
    result<std::size_t> read_until(std::string& text, std::string_view mark,
                                   std::size_t most = 65536,
                                   std::source_location caller = std::source_location::current());
    result<std::size_t> write(std::span<const std::byte> from,
                              std::source_location caller = std::source_location::current());
    transfer_result write_all(std::span<const std::byte> from,
                              std::source_location caller = std::source_location::current());

    // Sends bytes of a regular file from `offset` on, by sendfile(2): they are not copied through
    // the program, and the file's position is not used. Sends at most a MiB at a time, and then
    // lets others run. What is not in memory is read from the disk during the call, and the thread
    // waits for it: for cold files use read() and write_all(). unexpected_eof: the file was, or has
    // become, shorter. is_a_directory, invalid_argument: it is not a regular file, or more bytes
    // are wanted than a std::size_t counts. errc::closed: the file was closed.
    // bad_file_descriptor: it is not open for reading.
    [[nodiscard]] detail::send_file_operation async_send_file(const file& from,
                                                              std::uint64_t offset,
                                                              std::uint64_t bytes) noexcept;
    transfer_result send_file(const file& from, std::uint64_t offset, std::uint64_t bytes,
                              std::source_location caller = std::source_location::current());

    // Ends one direction or both; the peer's reads then find the end. Does not wait.
    result<void> shutdown(direction d) noexcept;
    // Closes the stream for all callers; what was written is still sent. Does not wait. Any thread.
    void close() noexcept {
        if (core_ != nullptr) core_->owned.ref().close();
    }
    // The same, after the peer has read all of it. A close while there is something to read, or
    // before the peer has ended, makes the system send a reset, and the peer may lose what it has
    // not read by then: the answer to a request that was not read to its end. So this shuts down
    // the sending side, reads and drops what comes until the peer ends too, at most `most` bytes,
    // and closes. Returns how much was dropped; the error is the reason why the peer was not waited
    // for: timed_out, message_size, operation_canceled (a stop), or the peer's own
    // (connection_reset). The stream is closed in any case but one: operation_in_progress, another
    // reader is active.
    [[nodiscard]] detail::closing_operation async_close_gracefully(
        time_limit limit, std::size_t most = 16u << 20) noexcept {
        return {core(), limit, most};
    }
    transfer_result close_gracefully(time_limit limit, std::size_t most = 16u << 20,
                                     std::source_location caller = std::source_location::current());
    // As close(), but the peer gets a reset, and what was not sent is dropped.
    void abort() noexcept;

    // A reader and a writer, each with an owner of its own (stream_halves.hpp). The stream is empty
    // afterwards; the halves of an empty stream are empty.
    [[nodiscard]] stream_halves split() && noexcept;

    // Limits of each operation from now on.
    void set_options(const stream_options& o) noexcept {
        if (core_ != nullptr) core_->set_options(o);
    }
    const stream_options& options() const noexcept { return core().options; }

    // No family after a close().
    endpoint local_endpoint() const noexcept { return detail::local_of(ref()); }
    endpoint remote_endpoint() const noexcept { return detail::peer_of(ref()); }
    // -1 after a close().
    int native_handle() const noexcept { return ref().number(); }

protected:
    result<std::size_t> read_here(std::span<std::byte> into, std::source_location caller);
    // The same, with as little on the stack as possible.
    result<std::size_t> read_apart(std::span<std::byte> into, std::source_location caller);

    friend detail::relay_operation async_relay(stream&, stream&, std::uint64_t) noexcept;
    const detail::descriptor_ref& ref() const noexcept { return core().owned.ref(); }
    explicit stream(std::shared_ptr<detail::stream_core> c) noexcept : core_(std::move(c)) {}
    detail::stream_core& core() const noexcept {
        return detail::core_or_none<detail::stream_core>(core_);
    }

    std::shared_ptr<detail::stream_core> core_;
};

}  // namespace weft
