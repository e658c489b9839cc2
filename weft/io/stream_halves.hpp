// stream_reader, stream_writer: the two halves of a stream, each with an owner of its own: one
// fiber, task or thread reads, and another writes.
//
// Design: both halves are the stream, with the operations of one direction (stream.hpp has their
// rules); the last half that goes closes the connection. A writer that is destroyed ends its
// direction, as does finish(): the peer then reads the end, while the reader may read on.
//
// Limits: close() and abort() of either half are those of the whole connection, and end the other
// half's waits with errc::closed. What one half alone does not have (options, limits, relay, passed
// descriptors) is used before the split. Halves are not joined again.
//
//   auto [reader, writer] = std::move(stream).split();     // a tcp_stream or a unix_stream
//   nursery.spawn([w = std::move(writer)]() mutable { use(w.write_all(answer)); });
//   std::array<std::byte, 512> buffer;
//   auto n = reader.read(buffer);                          // zero: the peer has ended
#pragma once

#include <memory>
#include <utility>

#include "weft/io/stream.hpp"

namespace weft {

class stream_reader : stream {
public:
    stream_reader() noexcept = default;  // none
    stream_reader(stream_reader&&) noexcept = default;
    stream_reader& operator=(stream_reader&&) noexcept = default;

    using stream::operator bool;

    using stream::async_read;
    using stream::async_read_borrowed;
    using stream::async_read_exact;
    using stream::async_read_until;
    using stream::read;
    using stream::read_borrowed;
    using stream::read_exact;
    using stream::read_until;

    using stream::abort;
    using stream::close;

    using stream::local_endpoint;
    using stream::native_handle;
    using stream::options;
    using stream::remote_endpoint;

private:
    friend stream;
    explicit stream_reader(std::shared_ptr<detail::stream_core> c) noexcept
        : stream(std::move(c)) {}
};

class stream_writer : stream {
public:
    stream_writer() noexcept = default;  // none
    stream_writer(stream_writer&&) noexcept = default;
    stream_writer& operator=(stream_writer&& other) noexcept {
        if (this != &other) {
            end();
            stream::operator=(std::move(other));
        }
        return *this;
    }
    // Ends the direction, as finish(). Does not wait.
    ~stream_writer() { end(); }

    using stream::operator bool;

    using stream::async_send_file;
    using stream::async_write;
    using stream::async_write_all;
    using stream::send_file;
    using stream::write;
    using stream::write_all;

    // The peer's reads find the end after what was written; a later write is broken_pipe. Does not
    // wait. Any thread.
    result<void> finish() noexcept { return shutdown(direction::write); }

    using stream::abort;
    using stream::close;

    using stream::local_endpoint;
    using stream::native_handle;
    using stream::options;
    using stream::remote_endpoint;

private:
    friend stream;
    explicit stream_writer(std::shared_ptr<detail::stream_core> c) noexcept
        : stream(std::move(c)) {}
    // Without a reader, the close that follows ends both directions.
    void end() noexcept {
        if (core_ != nullptr && core_.use_count() != 1) static_cast<void>(finish());
    }
};

// The two halves of a stream, from stream::split().
struct stream_halves {
    stream_reader reader;
    stream_writer writer;
};

inline stream_halves stream::split() && noexcept {
    std::shared_ptr<detail::stream_core> c = std::move(core_);
    return {stream_reader(c), stream_writer(std::move(c))};
}

}  // namespace weft
