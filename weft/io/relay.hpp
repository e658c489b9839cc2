// relay: moves the bytes of one stream to another, without copying them through the program
// (splice(2)).
//
// Design: the system moves the bytes through a pipe that belongs to the operation and is filled
// only when it is empty. So bytes that have left one stream and not reached the other are in one
// place; if the relay ends early, the caller gets them.
//
//      from --splice--> [pipe: 64 KiB] --splice--> to          result: bytes, rest, error
//
// The operation has the turn to read `from` and the turn to write `to` as long as it lasts
// (operation_in_progress: another operation has one of them). It ends with timed_out if nothing
// moves for the shorter of from's read_timeout and to's write_timeout. After each MiB others run.
//
// It is meant for proxies that do not look at the bytes. For a file to a stream there is
// stream::send_file().
//
// Limits: no tls_stream; two more descriptors while it lasts, and 16 pages of the pipes that a user
// may have (fs.pipe-user-pages-soft: beyond it pipes are small, and slow).
//
//   auto r = weft::relay(client, server);               // until the client has ended
//   if (r) use(server.shutdown(weft::direction::write));
//   else log(r.bytes(), r.rest().size(), r.error());    // so many arrived; these did not
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <system_error>
#include <utility>
#include <vector>

#include "weft/io/owned_number.hpp"
#include "weft/io/stream.hpp"

namespace weft {

// How far a relay came.
class [[nodiscard]] relay_result {
public:
    relay_result() noexcept = default;
    relay_result(std::uint64_t bytes, std::vector<std::byte> rest, std::error_code error) noexcept
        : bytes_(bytes), rest_(std::move(rest)), error_(error) {}

    explicit operator bool() const noexcept { return !error_; }
    std::uint64_t bytes() const noexcept { return bytes_; }  // received by `to`
    // Taken from `from` and not sent; only with an error.
    const std::vector<std::byte>& rest() const& noexcept { return rest_; }
    std::vector<std::byte> rest() && noexcept { return std::move(rest_); }
    // A zero code: all that was asked for was received, or `from` has ended.
    std::error_code error() const noexcept { return error_; }
    // bytes(); throws the error as std::system_error.
    std::uint64_t value() const {
        if (error_) detail::throw_error(error_);
        return bytes_;
    }

private:
    std::uint64_t bytes_ = 0;
    std::vector<std::byte> rest_;
    std::error_code error_;
};

namespace detail {

class relay_operation final : public io_operation {
public:
    relay_operation(stream_core& from, stream_core& to, std::uint64_t most) noexcept;
    relay_operation(relay_operation&& other) noexcept;  // before it is awaited
    ~relay_operation() { release(); }

    bool ready() noexcept;
    bool start(waiter& w) noexcept;
    bool again(waiter& w) noexcept;
    relay_result take(const waiter* w, wait_status how);

private:
    static constexpr std::size_t turn_bytes = 1 << 20;
    static constexpr std::size_t pipe_bytes = 65536;

    static bool look(io_operation& op, std::size_t count) noexcept;
    bool take_turns() noexcept;
    void release() noexcept;
    void fill() noexcept;
    bool rests() noexcept;

    stream_core* from_;
    stream_core* to_;
    owned_number inlet_;
    owned_number outlet_;
    splice_part part_;
    std::uint64_t left_;  // still to be read from `from`
    std::uint64_t arrived_ = 0;
    duration patience_;
    std::size_t turn_ = 0;  // bytes that arrived in this turn
    bool rests_ = false;    // this turn has moved enough
    bool reads_ = false;    // has the turn to read `from`
    bool writes_ = false;   // has the turn to write `to`
    bool refused_ = false;
};

}  // namespace detail

// At most `most` bytes; fewer if `from` ends before.
[[nodiscard]] detail::relay_operation async_relay(stream& from, stream& to,
                                                  std::uint64_t most = UINT64_MAX) noexcept;
relay_result relay(stream& from, stream& to, std::uint64_t most = UINT64_MAX,
                   std::source_location caller = std::source_location::current());

}  // namespace weft
