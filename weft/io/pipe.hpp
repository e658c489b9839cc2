// pipe: bytes one way, within the machine: what is written at one end is read at the other.
//
// Its one idea: the ends are those of a stream, each with one direction: the same operations, the
// same two spellings, the same rules (stream.hpp). They are what a child process is spoken to by
// (process.hpp); and whatever is read or written like a pipe can be made one: a FIFO, a terminal,
// the program's own standard input.
//
//   auto p = weft::pipe::open().value();
//   auto w = p.writer.write_all(weft::bytes_of("hello\n"));  // broken_pipe: no reader
//   p.writer.close();
//   auto n = p.reader.read(buffer);  // zero: the writer has closed
//
//   auto in = weft::pipe_reader::adopt(::dup(0)).value();
//
// With every driver the party makes the call itself, when it is told that it can. SIGPIPE is never
// raised: at no cost since Linux 6.18, at the price of two system calls a write before
// (quiet_write.hpp).
#pragma once

#include <cstddef>
#include <memory>
#include <source_location>
#include <span>
#include <utility>

#include "weft/io/stream.hpp"

namespace weft {

// What both ends are.
class pipe_end {
public:
    explicit operator bool() const noexcept { return core_ != nullptr; }

    // It is gone for everybody, and the other end is told, by the driver's next turn at the latest.
    // Any thread.
    void close() noexcept {
        if (core_ != nullptr) core_->owned.ref().close();
    }
    // Limits of each operation from now on. Of an end.
    void set_options(const stream_options& o) noexcept {
        if (core_ != nullptr) core_->set_options(o);
    }
    const stream_options& options() const noexcept { return core().options; }

    int native_handle() const noexcept { return core_ != nullptr ? core_->owned.number() : -1; }

protected:
    using place_t = std::source_location;

    pipe_end() noexcept = default;
    explicit pipe_end(std::shared_ptr<detail::stream_core> c) noexcept : core_(std::move(c)) {}
    pipe_end(pipe_end&&) noexcept = default;
    pipe_end& operator=(pipe_end&&) noexcept = default;
    ~pipe_end() = default;

    static result<std::shared_ptr<detail::stream_core>> hold(int number) noexcept;

    detail::stream_core& core() const noexcept {
        return detail::core_or_none<detail::stream_core>(core_);
    }

    std::shared_ptr<detail::stream_core> core_;
};

class pipe_reader : public pipe_end {
public:
    pipe_reader() noexcept = default;  // none

    // Of a number that can be read; it is the reader's from now on, also if this fails. It does not
    // block from now on, and neither does what shares its opening: a duplicate, another process.
    static result<pipe_reader> adopt(int number) noexcept;

    // Some: at least one byte; zero: the end.
    [[nodiscard]] detail::read_operation async_read(std::span<std::byte> into) noexcept {
        return {core(), into, 1};
    }
    [[nodiscard]] detail::read_exact_operation async_read_exact(
        std::span<std::byte> into) noexcept {
        return {core(), into};
    }
    // The same, in a buffer that is lent when something has come (lent_bytes.hpp).
    [[nodiscard]] detail::receive_operation async_receive() noexcept {
        return detail::receive_operation(core());
    }
    result<std::size_t> read(std::span<std::byte> into, place_t place = place_t::current()) {
        auto op = async_read(into);
        return detail::block_for(op, place);
    }
    result<lent_bytes> receive(place_t place = place_t::current()) {
        auto op = async_receive();
        return detail::block_for(op, place);
    }
    transferred read_exact(std::span<std::byte> into, place_t place = place_t::current()) {
        auto op = async_read_exact(into);
        return detail::block_for(op, place);
    }

private:
    using pipe_end::pipe_end;
};

class pipe_writer : public pipe_end {
public:
    pipe_writer() noexcept = default;  // none

    // As pipe_reader::adopt.
    static result<pipe_writer> adopt(int number) noexcept;

    [[nodiscard]] detail::write_operation async_write(std::span<const std::byte> from) noexcept {
        return {core(), from, 1};
    }
    [[nodiscard]] detail::write_all_operation async_write_all(
        std::span<const std::byte> from) noexcept {
        return {core(), from};
    }
    result<std::size_t> write(std::span<const std::byte> from, place_t place = place_t::current()) {
        auto op = async_write(from);
        return detail::block_for(op, place);
    }
    transferred write_all(std::span<const std::byte> from, place_t place = place_t::current()) {
        auto op = async_write_all(from);
        return detail::block_for(op, place);
    }

private:
    using pipe_end::pipe_end;
};

struct pipe {
    pipe_reader reader;
    pipe_writer writer;

    static result<pipe> open();  // too_many_files_open, not_enough_memory
};

}  // namespace weft
