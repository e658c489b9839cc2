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
// One reader and one writer at a time; a second one of a kind gets operation_in_progress at once.
// Errors of the system are returned as they are (connection_reset, broken_pipe); SIGPIPE is never
// raised. Any agent may close a stream: waits end with errc::closed.
//
// With io_uring the system uses the buffer until the operation has ended, and with every driver the
// next try does: an operation is never left before.
//
//   std::array<std::byte, 512> buffer;
//   while (auto n = s.read(buffer).value_or(0))
//       if (!s.write_all(std::span(buffer).first(n))) break;
//
// Model: none, each flag is taken or refused in one exchange, and finds misuse.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/errc.hpp"
#include "weft/base/platform.hpp"
#include "weft/io/borrowed_buffer.hpp"
#include "weft/io/buffer_list.hpp"
#include "weft/io/detail/io_operation.hpp"
#include "weft/io/detail/socket.hpp"
#include "weft/io/detail/stream_core.hpp"
#include "weft/io/detail/stream_transfer.hpp"
#include "weft/io/endpoint.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class file;
struct stream_halves;

// The bytes of a text.
inline std::span<const std::byte> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

namespace detail {

// A base, so that the pointer is stored before the fields that most operations touch, and not after
// those that few touch.
struct of_stream {
    stream_core* core_;
};

// A transfer on a stream: the only one of its direction while it lasts.
class stream_operation : protected of_stream, public io_operation {
public:
    stream_operation(stream_operation&& other) noexcept
        : of_stream(other), io_operation(std::move(other)) {}
    ~stream_operation() { release(); }

    bool ready() noexcept {
        if (!take_turn()) return true;
        if (request_.bytes == 0 && !request_.borrows && request_.of.is_open()) [[unlikely]]
            return found_nothing_to_do();
        return io_operation::ready();
    }
    bool again(waiter& w) noexcept {
        prefetch(core_);  // the next operation needs it; loaded during the call
        return io_operation::again(w);
    }

protected:
    stream_operation(stream_core& c, bool reads, void* data, std::size_t bytes, std::size_t least,
                     duration timeout, const char* what) noexcept
        : of_stream{&c},
          io_operation(reads ? c.reads_by : c.writes_by, reads, c.owned.ref(), data, bytes, least,
                       timeout, what) {}

    // False: another operation has the turn, and this one is refused.
    bool take_turn() noexcept {
        // Relaxed, here and below: a turn publishes no data.
        has_turn_ = !turn().exchange(true, std::memory_order_relaxed);
        lacks_turn_ = !has_turn_ && request_.of;  // empty streams share a core without turns
        return !lacks_turn_;
    }
    bool refused() const noexcept { return lacks_turn_; }
    WEFT_ALWAYS_INLINE void release() noexcept {
        if (std::exchange(has_turn_, false)) turn().store(false, std::memory_order_relaxed);
    }

private:
    atomic<bool>& turn() noexcept { return core_->turn(request_.reads); }
};

class read_operation : public stream_operation {
public:
    read_operation(stream_core& c, std::span<std::byte> into, std::size_t least) noexcept
        : stream_operation(c, true, into.data(), into.size(), least, c.options.read_timeout,
                           "bytes to read") {}
    result<std::size_t> take(const waiter* w, wait_status how) noexcept {
        if (refused()) return failure(std::errc::operation_in_progress);
        release();
        return some(w, how);
    }
};

// Needs no buffer until data has come.
class read_borrowed_operation : public stream_operation {
public:
    explicit read_borrowed_operation(stream_core& c) noexcept
        : stream_operation(c, true, nullptr, 0, 1, c.options.read_timeout, "bytes to read") {
        request_.borrows = true;
    }
    read_borrowed_operation(read_borrowed_operation&&) noexcept = default;
    ~read_borrowed_operation() {
        if (request_.data != nullptr) request_.release_buffer();  // take() has not returned it
    }
    result<borrowed_buffer> take(const waiter* w, wait_status how) noexcept {
        if (refused()) return failure(std::errc::operation_in_progress);
        release();
        const result<std::size_t> n = some(w, how);
        if (!n) return failure(n.error());
        if (*n == 0) return borrowed_buffer();
        auto* const at = static_cast<std::byte*>(std::exchange(request_.data, nullptr));
        return borrowed_buffer(*request_.lender, {at, *n});
    }
};

// A read of several calls, which a peer could prolong: see
// stream_options::min_read_bytes_per_second.
class long_read_operation : public stream_operation {
protected:
    long_read_operation(stream_core& c, void* into, std::size_t bytes, std::size_t least) noexcept
        : stream_operation(c, true, into, bytes, least, c.options.read_timeout, "bytes to read"),
          min_rate_(c.options.min_read_bytes_per_second) {}

    bool is_measured() const noexcept { return min_rate_ != 0; }
    // This many bytes have come, and more are needed.
    void credit(std::size_t bytes) noexcept {
        prolong(
            duration(static_cast<duration::rep>(bytes * std::uint64_t{1'000'000'000} / min_rate_)));
    }

private:
    std::uint32_t min_rate_;
};

class read_exact_operation : public long_read_operation {
public:
    read_exact_operation(stream_core& c, std::span<std::byte> into) noexcept
        : long_read_operation(c, into.data(), into.size(), into.size()), all_(into.size()) {
        if (is_measured() && !request_.goes_on()) enough_ = look;
    }
    transfer_result take(const waiter* w, wait_status how) noexcept {
        if (refused()) return {0, std::make_error_code(std::errc::operation_in_progress)};
        release();
        return all_or_eof(outcome(w, how), all_);
    }

private:
    static bool look(io_operation& op, std::size_t count) noexcept;

    std::size_t all_;
};

// Appends to `text` until it holds the delimiter.
class read_until_operation final : public long_read_operation {
public:
    read_until_operation(stream_core& c, std::string& text, std::string_view mark,
                         std::size_t most) noexcept;
    bool ready();  // throws bad_alloc
    result<std::size_t> take(const waiter* w, wait_status how) noexcept;

private:
    static bool look(io_operation& op, std::size_t count) noexcept;
    bool found() noexcept;
    bool make_room();

    std::string* text_;
    std::string_view mark_;
    std::size_t most_;
    std::size_t filled_ = 0;  // bytes of the text; the rest of it is room
    std::size_t looked_at_ = 0;
    std::size_t end_ = 0;  // after the delimiter
    bool is_found_ = false;
    bool has_no_memory_ = false;
};

class write_operation : public stream_operation {
public:
    write_operation(stream_core& c, std::span<const std::byte> from, std::size_t least) noexcept
        : stream_operation(c, false, const_cast<std::byte*>(from.data()), from.size(), least,
                           c.options.write_timeout, "room to write") {}
    result<std::size_t> take(const waiter* w, wait_status how) noexcept {
        if (refused()) return failure(std::errc::operation_in_progress);
        release();
        return some(w, how);
    }
};

class write_all_operation : public write_operation {
public:
    write_all_operation(stream_core& c, std::span<const std::byte> from) noexcept
        : write_operation(c, from, from.size()) {}
    transfer_result take(const waiter* w, wait_status how) noexcept {
        if (refused()) return {0, std::make_error_code(std::errc::operation_in_progress)};
        release();
        return outcome(w, how);
    }
};

// For several buffers; passed to the system as one message.
template <class Byte>
class list_operation : public stream_operation {
public:
    bool ready() noexcept {
        if (!take_turn() || !prepare()) return true;
        return io_operation::ready();
    }

protected:
    list_operation(stream_core& c, bool reads, std::span<const std::span<Byte>> all,
                   duration timeout, const char* what) noexcept
        : stream_operation(c, reads, nullptr, 0, 1, timeout, what), list_(all) {
        if (request_.what == io_request::receive)
            request_.what = io_request::receive_message;
        else if (request_.what == io_request::send)
            request_.what = io_request::send_message;
        else
            request_.several = true;
    }

    // From now on the object stays at its address. False: there is nothing to do.
    bool prepare() noexcept {
        request_.data = &list_.message();
        request_.bytes = list_.fill();
        return request_.bytes != 0 || !request_.of.is_open() || !progress(0);
    }
    // This many bytes are done. True: all are.
    bool advance(std::size_t count) noexcept {
        list_.advance(count);
        request_.bytes = list_.fill();
        return request_.bytes == 0;
    }

private:
    buffer_list<Byte> list_;
};

class read_list_operation : public list_operation<std::byte> {
public:
    read_list_operation(stream_core& c, std::span<const std::span<std::byte>> into) noexcept
        : list_operation(c, true, into, c.options.read_timeout, "bytes to read") {}
    result<std::size_t> take(const waiter* w, wait_status how) noexcept {
        if (refused()) return failure(std::errc::operation_in_progress);
        release();
        return some(w, how);
    }
};

class write_list_operation : public list_operation<const std::byte> {
public:
    write_list_operation(stream_core& c, std::span<const std::span<const std::byte>> from) noexcept
        : list_operation(c, false, from, c.options.write_timeout, "room to write") {
        enough_ = [](io_operation& op, std::size_t count) noexcept {
            return static_cast<write_list_operation&>(op).advance(count);
        };
    }
    transfer_result take(const waiter* w, wait_status how) noexcept {
        if (refused()) return {0, std::make_error_code(std::errc::operation_in_progress)};
        release();
        return outcome(w, how);
    }
};

// For a file, at most 1 MiB per turn.
class send_file_operation final : public stream_operation {
public:
    static constexpr std::size_t turn_bytes = 1 << 20;

    send_file_operation(stream_core& c, const descriptor_ref& from, std::uint64_t offset,
                        std::uint64_t bytes) noexcept;
    bool ready() noexcept;
    bool start(waiter& w) noexcept;
    bool again(waiter& w) noexcept;
    transfer_result take(const waiter* w, wait_status how) noexcept;

private:
    static bool look(io_operation& op, std::size_t count) noexcept;
    bool is_refused() noexcept;
    bool rests() noexcept;

    file_part part_;
    std::uint64_t left_;
    std::uint64_t all_;
    std::size_t turn_ = 0;  // bytes that were sent in this turn
    bool rests_ = false;    // this turn has sent enough
};

class relay_operation;  // relay.hpp

// Shuts down the sending side, reads and drops what comes until the peer ends too, and closes.
class closing_operation final : public stream_operation {
public:
    closing_operation(stream_core& c, time_limit limit, std::size_t most) noexcept;
    bool ready() noexcept;
    transfer_result take(const waiter* w, wait_status how) noexcept;

private:
    static constexpr std::size_t room_bytes = 16384;

    static bool look(io_operation& op, std::size_t count) noexcept;

    std::size_t left_;  // of what may come
    std::unique_ptr<std::byte[]> room_;
};

}  // namespace detail

// Which direction of a stream.
enum class direction : std::uint8_t { read, write, both };

class stream {
public:
    stream() noexcept = default;  // none
    stream(stream&&) noexcept = default;
    stream& operator=(stream&&) noexcept = default;

    explicit operator bool() const noexcept { return core_ != nullptr; }

    [[nodiscard]] detail::read_transfer async_read(std::span<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::read_exact_operation async_read_exact(
        std::span<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::write_transfer async_write(std::span<const std::byte> from) noexcept {
        return {core(), from};
    }
    [[nodiscard]] detail::write_all_transfer async_write_all(
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
    // become, shorter. is_a_directory, invalid_argument: it is not a regular file.
    // bad_file_descriptor: the file was closed, or is not open for reading.
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
