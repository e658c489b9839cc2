// stream_operations: what the functions of a stream return to be awaited: its reads and writes, of
// one buffer and of several, the sending of a file, and the close that lets the peer read all.
//
// Design: each is an io_operation that takes the turn of its direction in ready(), and gives it
// back in take(). The plain reads and writes of one buffer are in stream_transfer.hpp, which is
// smaller.
//
// Model: none, each flag is taken or refused in one exchange, and finds misuse.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weft/base/detail/min_max.hpp"
#include "weft/base/platform.hpp"
#include "weft/io/borrowed_buffer.hpp"
#include "weft/io/buffer_list.hpp"
#include "weft/io/detail/io_operation.hpp"
#include "weft/io/detail/stream_core.hpp"

namespace weft::detail {

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
    bool is_out_of_turn() const noexcept { return lacks_turn_; }
    WEFT_ALWAYS_INLINE void release() noexcept {
        // Relaxed: as in take_turn().
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
        if (is_out_of_turn()) return failure(std::errc::operation_in_progress);
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
        if (is_out_of_turn()) return failure(std::errc::operation_in_progress);
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
        if (is_out_of_turn()) return {0, std::make_error_code(std::errc::operation_in_progress)};
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
        if (is_out_of_turn()) return failure(std::errc::operation_in_progress);
        release();
        return some(w, how);
    }
};

class write_all_operation : public write_operation {
public:
    write_all_operation(stream_core& c, std::span<const std::byte> from) noexcept
        : write_operation(c, from, from.size()) {}
    transfer_result take(const waiter* w, wait_status how) noexcept {
        if (is_out_of_turn()) return {0, std::make_error_code(std::errc::operation_in_progress)};
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
        if (is_out_of_turn()) return failure(std::errc::operation_in_progress);
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
        if (is_out_of_turn()) return {0, std::make_error_code(std::errc::operation_in_progress)};
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

    std::size_t bytes_of_turn() const noexcept {
        return static_cast<std::size_t>(min_of<std::uint64_t>(left_, turn_bytes));
    }

    file_part part_;
    std::uint64_t left_;
    std::size_t all_;
    std::size_t turn_ = 0;  // bytes that were sent in this turn
    bool rests_ = false;    // this turn has sent enough
};

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

}  // namespace weft::detail
