// pipe: bytes one way, within the machine: what is written at one end is read at the other.
//
// Design: the ends are those of a stream, each with one direction: the same operations, the same
// two forms, the same rules (stream.hpp). Child processes are connected by pipes (process.hpp); and
// any descriptor that is read or written like a pipe can be adopted: a FIFO, a terminal, the
// program's own standard input.
//
// Limits: if the descriptor is a regular file (a redirected standard input), it is read and written
// at its file position: what is in memory at once, the rest by a thread of the blocking pool, under
// the rules of file.hpp: a call that has started is not interrupted, and its buffer must not be on
// a shared stack. For everything else the flow makes the call itself, with every driver, when the
// descriptor is ready. SIGPIPE is never raised: at no cost since Linux 6.18, at the cost of two
// system calls per write before (write_nosignal.hpp). The destructor of an end closes that end.
//
//   auto p = weft::pipe::open().value();
//   auto w = p.writer.write_all(weft::bytes_of("hello\n"));  // broken_pipe: no reader
//   p.writer.close();
//   auto n = p.reader.read(buffer);  // zero: the writer has closed
//
//   auto in = weft::standard_input().value();  // standard_streams.hpp
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <utility>

#include "weft/io/stream.hpp"
#include "weft/sched/blocking.hpp"

namespace weft {

namespace detail {

// Makes a call on a file if everything that it needs is in memory. Returns the result; zero or
// -errno: a thread that may block has to make the call.
std::int64_t go_on_quickly(io_request& r) noexcept;

// For an fd that is not a socket; it is closed on failure.
result<std::shared_ptr<stream_core>> hold_pipe(int number) noexcept;

// A transfer that waits for readiness, or that a thread of the pool makes if it is on a file.
template <class Op>
class pipe_operation final : public Op, blocking_call {
public:
    template <class... Arguments>
    explicit pipe_operation(stream_core& c, Arguments... a) noexcept
        : Op(c, a...), blocking_call(default_blocking_pool()) {}
    pipe_operation(pipe_operation&&) noexcept = default;  // before it is awaited

    bool ready() noexcept {
        if (!this->request_.goes_on()) [[likely]]
            return Op::ready();
        if (!this->take_turn()) return true;
        if constexpr (requires { this->prepare(); })
            if (!this->prepare()) return true;
        const std::int64_t n = go_on_quickly(this->request_);
        return n > 0 && this->progress(n);
    }
    bool start(waiter& w) noexcept {
        if (!this->request_.goes_on()) [[likely]]
            return Op::start(w);
        constexpr const char* why = "the buffer of a file is on a shared stack";
        if (this->request_.several) {
            const ::msghdr& m = *static_cast<const ::msghdr*>(this->request_.data);
            for (std::size_t i = 0; i != std::size_t(m.msg_iovlen); ++i)
                refuse_on_shared_stack(m.msg_iov[i].iov_base, why);
        } else {
            refuse_on_shared_stack(this->request_.data, why);
        }
        this->begin_timeout();
        run = [](blocking_job& j) noexcept {
            auto& self = static_cast<pipe_operation&>(j);
            while (!self.call() && !self.is_asked_to_end()) {
            }
        };
        return blocking_call::begin(w, this->what_);
    }
    bool again(waiter& w) noexcept { return this->request_.goes_on() || Op::again(w); }

private:
    // On a thread of the pool. True: there is no more to do.
    bool call() noexcept {
        std::int64_t n;
        do {
            n = this->request_.try_anyway();
        } while (n == -EINTR);
        return n == io_request::was_closed ? this->found_closed() : this->progress(n);
    }
};

}  // namespace detail

// The base of both ends.
class pipe_end {
public:
    explicit operator bool() const noexcept { return core_ != nullptr; }

    // Closes it for all callers. The peer sees the end by the driver's next turn at the latest. Any
    // thread.
    void close() noexcept {
        if (core_ != nullptr) core_->owned.ref().close();
    }
    // Limits of each operation from now on. Precondition: it is not empty.
    void set_options(const stream_options& o) noexcept {
        if (core_ != nullptr) core_->set_options(o);
    }
    const stream_options& options() const noexcept { return core().options; }

    int native_handle() const noexcept { return core().owned.number(); }

protected:
    pipe_end() noexcept = default;
    explicit pipe_end(std::shared_ptr<detail::stream_core> c) noexcept : core_(std::move(c)) {}
    pipe_end(pipe_end&&) noexcept = default;
    pipe_end& operator=(pipe_end&&) noexcept = default;
    ~pipe_end() = default;

    detail::stream_core& core() const noexcept {
        return detail::core_or_none<detail::stream_core>(core_);
    }

    std::shared_ptr<detail::stream_core> core_;
};

// The end of a pipe that is read from.
class pipe_reader : public pipe_end {
    template <class Op>
    using operation = detail::pipe_operation<Op>;

public:
    pipe_reader() noexcept = default;  // none

    // Takes ownership of an fd that can be read, also on failure. Unless it is a regular file, it
    // is nonblocking from now on, and so is what shares its open file description: a duplicate,
    // another process.
    static result<pipe_reader> adopt(int number) noexcept;

    // Some: at least one byte; zero: the end.
    [[nodiscard]] operation<detail::read_operation> async_read(std::span<std::byte> into) noexcept {
        return operation<detail::read_operation>(core(), into, 1u);
    }
    [[nodiscard]] operation<detail::read_exact_operation> async_read_exact(
        std::span<std::byte> into) noexcept {
        return operation<detail::read_exact_operation>(core(), into);
    }
    // The same, into a buffer that is borrowed when data has come (borrowed_buffer.hpp).
    [[nodiscard]] operation<detail::read_borrowed_operation> async_read_borrowed() noexcept {
        return operation<detail::read_borrowed_operation>(core());
    }
    [[nodiscard]] operation<detail::read_list_operation> async_read(
        buffers_of<std::byte> into) noexcept {
        return operation<detail::read_list_operation>(core(), into);
    }
    result<std::size_t> read(buffers_of<std::byte> into,
                             std::source_location caller = std::source_location::current()) {
        auto op = async_read(into);
        return detail::block_for(op, caller);
    }
    result<std::size_t> read(std::span<std::byte> into,
                             std::source_location caller = std::source_location::current()) {
        auto op = async_read(into);
        return detail::block_for(op, caller);
    }
    result<borrowed_buffer> read_borrowed(
        std::source_location caller = std::source_location::current()) {
        auto op = async_read_borrowed();
        return detail::block_for(op, caller);
    }
    transfer_result read_exact(std::span<std::byte> into,
                               std::source_location caller = std::source_location::current()) {
        auto op = async_read_exact(into);
        return detail::block_for(op, caller);
    }

private:
    friend result<pipe_reader> standard_input() noexcept;
    using pipe_end::pipe_end;
};

// The end of a pipe that is written to.
class pipe_writer : public pipe_end {
    template <class Op>
    using operation = detail::pipe_operation<Op>;

public:
    pipe_writer() noexcept = default;  // none

    // As pipe_reader::adopt.
    static result<pipe_writer> adopt(int number) noexcept;

    [[nodiscard]] operation<detail::write_operation> async_write(
        std::span<const std::byte> from) noexcept {
        return operation<detail::write_operation>(core(), from, 1u);
    }
    [[nodiscard]] operation<detail::write_all_operation> async_write_all(
        std::span<const std::byte> from) noexcept {
        return operation<detail::write_all_operation>(core(), from);
    }
    [[nodiscard]] operation<detail::write_list_operation> async_write_all(
        buffers_of<const std::byte> from) noexcept {
        return operation<detail::write_list_operation>(core(), from);
    }
    transfer_result write_all(buffers_of<const std::byte> from,
                              std::source_location caller = std::source_location::current()) {
        auto op = async_write_all(from);
        return detail::block_for(op, caller);
    }
    result<std::size_t> write(std::span<const std::byte> from,
                              std::source_location caller = std::source_location::current()) {
        auto op = async_write(from);
        return detail::block_for(op, caller);
    }
    transfer_result write_all(std::span<const std::byte> from,
                              std::source_location caller = std::source_location::current()) {
        auto op = async_write_all(from);
        return detail::block_for(op, caller);
    }

private:
    friend result<pipe_writer> standard_output() noexcept;
    friend result<pipe_writer> standard_error() noexcept;
    using pipe_end::pipe_end;
};

struct pipe {
    pipe_reader reader;
    pipe_writer writer;

    static result<pipe> open();  // too_many_files_open, not_enough_memory
};

}  // namespace weft
