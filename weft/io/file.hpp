// file: bytes at offsets, in a file system.
//
// Design: a file is always ready, and a call on it may still wait, for a disk or a network. So an
// operation waits for the call and not for the file: io_uring is given the call; with the other
// drivers, and for what io_uring does not do, a thread of the blocking pool makes it. What is in
// memory already is read at once, without either.
//
//      read   read_at               some: at least one byte; zero: the end     result<size_t>
//      read_exact   read_exact_at   all of the buffer, or unexpected_eof       transfer_result
//      write_all   write_all_at     all of it                                  transfer_result
//
// Each takes several buffers too (a std::array or std::vector of spans, which stays until the
// operation has ended), with one call for each 32 of them.
//
// Callers may use a file concurrently by offset (the _at functions). The other functions use and
// advance the position of this object: one caller at a time, a second one gets
// operation_in_progress at once.
//
// A stop and a deadline end the wait for a call that has not started. A call that has started
// cannot be interrupted and uses the buffer until it has ended, so the wait lasts as long, and the
// call's result counts. That is not long: a call moves one MiB at most. A longer transfer is made
// of several calls and ends early between two of them, with what was transferred until then. If the
// frame is destroyed meanwhile, its whole thread waits for the call. The buffer must not be on a
// shared stack.
//
// Limits: a file must have offsets: regular files, block devices. A directory can be opened, and a
// read of it gives is_a_directory. A file without offsets gives invalid_seek: a FIFO and a terminal
// are for pipe_reader. Opening waits for no other process: a lease that another process holds gives
// resource_unavailable_try_again. The error that close(2) would return on a network file system is
// not reported: call sync() before, which reports it. The destructor closes the file.
//
//   auto f = weft::file::open("notes.txt", {.write = true, .create = true}).value();
//   auto w = f.write_all_at(weft::bytes_of("hello\n"), 0);   // in a coroutine async_write_all_at
//   if (auto r = f.sync(); !r) return r.error();        // on the disk
//   while (auto n = f.read(buffer).value_or(0)) ...     // from its beginning on
//
// Model: none, a flag is taken or refused in one exchange, and the other is a hint.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>

#include "weft/base/errc.hpp"
#include "weft/io/detail/io_operation.hpp"
#include "weft/io/stream.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/wait/await.hpp"

namespace weft {

// How a file is opened.
struct file_options {
    bool read = true;
    bool write = false;
    bool append = false;            // writes go to the end, whatever the offset
    bool create = false;            // if it does not exist
    bool exclusive = false;         // with create: file_exists if it exists
    bool truncate = false;          // its contents are dropped
    ::mode_t mode = 0666;           // of a created file, less the umask
    blocking_pool* pool = nullptr;  // whose threads make the calls; null: the default
    duration timeout = no_timeout;  // of one operation
};

class file;

namespace detail {

struct file_core {
    descriptor owned;
    duration timeout = no_timeout;
    blocking_pool* pool = nullptr;
    std::uint64_t position = 0;    // owned by the operation that has set `moving`
    atomic<bool> moving{false};    // an operation uses the position
    atomic<bool> has_quick{true};  // the file system supports RWF_NOWAIT
};

// One call on a file, or several in sequence, made by a driver or by a thread of the pool.
class file_operation : public io_operation, blocking_call {
public:
    file_operation(file_operation&& other) noexcept = default;  // before it is awaited
    ~file_operation() = default;

    bool ready() noexcept { return found_unusable(); }
    bool start(waiter& w) noexcept;
    bool again(waiter& w) noexcept { return !request_.given || io_operation::again(w); }

protected:
    file_operation(blocking_pool* pool, const io_request& r, duration timeout,
                   const char* what) noexcept;
    file_operation(const file_core& c, io_request::kind what, std::uint64_t offset,
                   const char* waits_for) noexcept;

private:
    bool call() noexcept;
};

// An offset, or the position of the file.
struct file_offset {
    file_offset() noexcept = default;
    file_offset(std::uint64_t o) noexcept : offset(o), is_position(false) {}

    std::uint64_t offset = 0;
    bool is_position = true;
};

// Transfers bytes, one piece per call.
class file_transfer : public file_operation {
public:
    static constexpr std::size_t piece_bytes = 1 << 20;

    file_transfer(file_transfer&& other) noexcept;
    ~file_transfer() { release(0); }

    bool ready() noexcept;

protected:
    file_transfer(file_core& c, io_request::kind what, const std::byte* data, std::size_t bytes,
                  bool all, file_offset at) noexcept;

    // The outcome; releases the position to the next operation.
    transfer_result taken(const waiter* w, wait_status how) noexcept;

private:
    static bool next_piece(io_operation& op, std::size_t count) noexcept;
    bool is_refused() noexcept;
    bool take_turn() noexcept;
    void release(std::size_t moved) noexcept;
    bool read_quickly() noexcept;

protected:
    std::size_t left_;

private:
    file_core* core_;
    bool by_position_;
    bool held_ = false;
    bool refused_ = false;
};

class file_read_operation final : public file_transfer {
public:
    file_read_operation(file_core& c, std::span<std::byte> into, file_offset at = {}) noexcept
        : file_transfer(c, io_request::read_at, into.data(), into.size(), false, at) {}
    result<std::size_t> take(const waiter* w, wait_status how) noexcept {
        const transfer_result t = taken(w, how);
        if (!t) return failure(t.error());
        return t.bytes();
    }
};

class file_read_exact_operation final : public file_transfer {
public:
    file_read_exact_operation(file_core& c, std::span<std::byte> into, file_offset at = {}) noexcept
        : file_transfer(c, io_request::read_at, into.data(), into.size(), true, at),
          all_(into.size()) {}
    transfer_result take(const waiter* w, wait_status how) noexcept {
        return all_or_eof(taken(w, how), all_);
    }

private:
    std::size_t all_;
};

class file_write_all_operation final : public file_transfer {
public:
    file_write_all_operation(file_core& c, std::span<const std::byte> from,
                             file_offset at = {}) noexcept
        : file_transfer(c, io_request::write_at, from.data(), from.size(), true, at) {}
    transfer_result take(const waiter* w, wait_status how) noexcept { return taken(w, how); }
};

// For several buffers, a window of them at a time.
template <class Byte>
class file_list_transfer : public file_transfer {
public:
    bool ready() noexcept {
        request_.data = &list_.message();  // stays at this address from now on
        request_.bytes = list_.fill(piece_bytes);
        return file_transfer::ready();
    }
    bool start(waiter& w) noexcept {
        if (completion_driver() == nullptr)
            for (const std::span<Byte> b : list_.rest())
                refuse_on_shared_stack(b.data(), "a buffer of a file's is on a shared stack");
        return file_transfer::start(w);
    }

protected:
    file_list_transfer(file_core& c, io_request::kind what, std::span<const std::span<Byte>> of,
                       bool all, file_offset at) noexcept
        : file_transfer(c, what, nullptr, bytes_in(of), false, at), list_(of) {
        request_.several = true;
        if (all) enough_ = next_window;
    }

private:
    static std::size_t bytes_in(std::span<const std::span<Byte>> of) noexcept {
        std::size_t bytes = 0;
        for (const std::span<Byte> b : of) bytes += b.size();
        return bytes;
    }
    static bool next_window(io_operation& op, std::size_t count) noexcept {
        auto& self = static_cast<file_list_transfer&>(op);
        self.list_.advance(count);
        self.request_.offset += count;
        self.request_.bytes = self.list_.fill(piece_bytes);
        return self.request_.bytes == 0;
    }

    buffer_list<Byte> list_;
};

class file_read_list_operation final : public file_list_transfer<std::byte> {
public:
    file_read_list_operation(file_core& c, std::span<const std::span<std::byte>> into,
                             file_offset at = {}) noexcept
        : file_list_transfer(c, io_request::read_at, into, false, at) {}
    result<std::size_t> take(const waiter* w, wait_status how) noexcept {
        const transfer_result t = taken(w, how);
        if (!t) return failure(t.error());
        return t.bytes();
    }
};

class file_read_exact_list_operation final : public file_list_transfer<std::byte> {
public:
    file_read_exact_list_operation(file_core& c, std::span<const std::span<std::byte>> into,
                                   file_offset at = {}) noexcept
        : file_list_transfer(c, io_request::read_at, into, true, at) {}
    transfer_result take(const waiter* w, wait_status how) noexcept {
        return all_or_eof(taken(w, how), left_);
    }
};

class file_write_list_operation final : public file_list_transfer<const std::byte> {
public:
    file_write_list_operation(file_core& c, std::span<const std::span<const std::byte>> from,
                              file_offset at = {}) noexcept
        : file_list_transfer(c, io_request::write_at, from, true, at) {}
    transfer_result take(const waiter* w, wait_status how) noexcept { return taken(w, how); }
};

class file_size_operation final : public file_operation {
public:
    explicit file_size_operation(const file_core& c) noexcept
        : file_operation(c, io_request::size, 0, "the size of a file") {}
    result<std::uint64_t> take(const waiter* w, wait_status how) const noexcept {
        const transfer_result t = outcome(w, how);
        if (!t) return failure(t.error());
        return std::uint64_t{t.bytes()};
    }
};

// A change that is made in full or not at all.
class file_change_operation final : public file_operation {
public:
    file_change_operation(const file_core& c, io_request::kind what, std::uint64_t offset,
                          const char* waits_for) noexcept
        : file_operation(c, what, offset, waits_for) {}
    result<void> take(const waiter* w, wait_status how) const noexcept {
        if (const transfer_result t = outcome(w, how); !t) return failure(t.error());
        return {};
    }
};

class file_open_operation final : public file_operation {
public:
    file_open_operation(std::string path, const file_options& o) noexcept;
    file_open_operation(file_open_operation&&) noexcept = default;
    ~file_open_operation();  // closes a file that take() has not returned

    bool ready() noexcept { return !is_sound_; }
    bool start(waiter& w) noexcept;
    result<file> take(const waiter* w, wait_status how) noexcept;

private:
    std::string path_;
    file_options options_;
    bool is_sound_;  // the options make sense together
    bool taken_ = false;
};

}  // namespace detail

class file {
public:
    file() noexcept = default;  // none

    // no_such_file_or_directory, permission_denied, ... ; invalid_argument: neither read nor write,
    // or an option without the one that it needs.
    [[nodiscard]] static detail::file_open_operation async_open(
        std::string path, const file_options& o = {}) noexcept {
        return {std::move(path), o};
    }
    static result<file> open(std::string path, const file_options& o = {},
                             std::source_location caller = std::source_location::current()) {
        auto op = async_open(std::move(path), o);
        return detail::block_for(op, caller);
    }
    // Takes ownership of an open fd, also on failure. From now on calls on it block, and so do
    // calls on what shares its open file description (no O_NONBLOCK). Of the options, only the
    // timeout and the pool are used. Does not wait.
    static result<file> adopt(int number, const file_options& o = {}) noexcept;

    explicit operator bool() const noexcept { return core_ != nullptr; }

    [[nodiscard]] detail::file_read_operation async_read(std::span<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::file_read_operation async_read_at(std::span<std::byte> into,
                                                            std::uint64_t offset) noexcept {
        return {core(), into, offset};
    }
    [[nodiscard]] detail::file_read_exact_operation async_read_exact(
        std::span<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::file_read_exact_operation async_read_exact_at(
        std::span<std::byte> into, std::uint64_t offset) noexcept {
        return {core(), into, offset};
    }
    [[nodiscard]] detail::file_write_all_operation async_write_all(
        std::span<const std::byte> from) noexcept {
        return {core(), from};
    }
    [[nodiscard]] detail::file_write_all_operation async_write_all_at(
        std::span<const std::byte> from, std::uint64_t offset) noexcept {
        return {core(), from, offset};
    }
    [[nodiscard]] detail::file_read_list_operation async_read(buffers_of<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::file_read_list_operation async_read_at(buffers_of<std::byte> into,
                                                                 std::uint64_t offset) noexcept {
        return {core(), into, offset};
    }
    [[nodiscard]] detail::file_read_exact_list_operation async_read_exact(
        buffers_of<std::byte> into) noexcept {
        return {core(), into};
    }
    [[nodiscard]] detail::file_read_exact_list_operation async_read_exact_at(
        buffers_of<std::byte> into, std::uint64_t offset) noexcept {
        return {core(), into, offset};
    }
    [[nodiscard]] detail::file_write_list_operation async_write_all(
        buffers_of<const std::byte> from) noexcept {
        return {core(), from};
    }
    [[nodiscard]] detail::file_write_list_operation async_write_all_at(
        buffers_of<const std::byte> from, std::uint64_t offset) noexcept {
        return {core(), from, offset};
    }
    [[nodiscard]] detail::file_size_operation async_size() noexcept {
        return detail::file_size_operation(core());
    }
    // Cuts the file off there, or extends it with zeroes.
    [[nodiscard]] detail::file_change_operation async_resize(std::uint64_t bytes) noexcept {
        return {core(), detail::io_request::resize, bytes, "a file to be resized"};
    }
    // When it has ended, everything written before is on the disk.
    [[nodiscard]] detail::file_change_operation async_sync() noexcept {
        return {core(), detail::io_request::sync, 0, "a disk"};
    }

    result<std::size_t> read(std::span<std::byte> into,
                             std::source_location caller = std::source_location::current()) {
        auto op = async_read(into);
        return detail::block_for(op, caller);
    }
    result<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset,
                                std::source_location caller = std::source_location::current()) {
        auto op = async_read_at(into, offset);
        return detail::block_for(op, caller);
    }
    transfer_result read_exact(std::span<std::byte> into,
                               std::source_location caller = std::source_location::current()) {
        auto op = async_read_exact(into);
        return detail::block_for(op, caller);
    }
    transfer_result read_exact_at(std::span<std::byte> into, std::uint64_t offset,
                                  std::source_location caller = std::source_location::current()) {
        auto op = async_read_exact_at(into, offset);
        return detail::block_for(op, caller);
    }
    transfer_result write_all(std::span<const std::byte> from,
                              std::source_location caller = std::source_location::current()) {
        auto op = async_write_all(from);
        return detail::block_for(op, caller);
    }
    transfer_result write_all_at(std::span<const std::byte> from, std::uint64_t offset,
                                 std::source_location caller = std::source_location::current()) {
        auto op = async_write_all_at(from, offset);
        return detail::block_for(op, caller);
    }
    result<std::size_t> read(buffers_of<std::byte> into,
                             std::source_location caller = std::source_location::current()) {
        auto op = async_read(into);
        return detail::block_for(op, caller);
    }
    result<std::size_t> read_at(buffers_of<std::byte> into, std::uint64_t offset,
                                std::source_location caller = std::source_location::current()) {
        auto op = async_read_at(into, offset);
        return detail::block_for(op, caller);
    }
    transfer_result read_exact(buffers_of<std::byte> into,
                               std::source_location caller = std::source_location::current()) {
        auto op = async_read_exact(into);
        return detail::block_for(op, caller);
    }
    transfer_result read_exact_at(buffers_of<std::byte> into, std::uint64_t offset,
                                  std::source_location caller = std::source_location::current()) {
        auto op = async_read_exact_at(into, offset);
        return detail::block_for(op, caller);
    }
    transfer_result write_all(buffers_of<const std::byte> from,
                              std::source_location caller = std::source_location::current()) {
        auto op = async_write_all(from);
        return detail::block_for(op, caller);
    }
    transfer_result write_all_at(buffers_of<const std::byte> from, std::uint64_t offset,
                                 std::source_location caller = std::source_location::current()) {
        auto op = async_write_all_at(from, offset);
        return detail::block_for(op, caller);
    }
    result<std::uint64_t> size(std::source_location caller = std::source_location::current()) {
        auto op = async_size();
        return detail::block_for(op, caller);
    }
    result<void> resize(std::uint64_t bytes,
                        std::source_location caller = std::source_location::current()) {
        auto op = async_resize(bytes);
        return detail::block_for(op, caller);
    }
    result<void> sync(std::source_location caller = std::source_location::current()) {
        auto op = async_sync();
        return detail::block_for(op, caller);
    }

    // Where the next read, read_exact or write_all starts. Not while one of them is under way.
    std::uint64_t position() const noexcept { return core().position; }
    void seek(std::uint64_t position) noexcept {
        if (core_ != nullptr) core_->position = position;
    }

    // Closes it for all callers: calls that are under way end first, and operations that have not
    // started get errc::closed. Does not wait for either. Any thread.
    void close() noexcept {
        if (core_ != nullptr) core_->owned.ref().close();
    }
    int native_handle() const noexcept { return core_ != nullptr ? core_->owned.number() : -1; }

private:
    friend class stream;
    explicit file(std::unique_ptr<detail::file_core> c) noexcept : core_(std::move(c)) {}
    detail::file_core& core() const noexcept {
        return detail::core_or_none<detail::file_core>(core_);
    }

    std::unique_ptr<detail::file_core> core_;
};

}  // namespace weft
