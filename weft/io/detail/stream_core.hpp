// stream_core: what both halves of a stream share: the descriptor, the limits, and the turn to read
// and the turn to write.
//
// Design: one reader and one writer at a time; each turn is a flag that is taken or refused in one
// exchange. The stream has its core on the heap, so that it may be moved while operations on it
// wait; those have the address of the core.
//
//   detail::stream_core& c = ...;
//   if (c.turn(false).exchange(true)) return operation_in_progress;
//
// Model: none, each flag is taken or refused in one exchange, and finds misuse.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/base/assert.hpp"
#include "weft/base/clock.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"
#include "weft/base/result.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/io/detail/io_request.hpp"
#include "weft/io/stream_options.hpp"

namespace weft::detail {

// What both halves of a stream share: the turn to read and the turn to write.
struct stream_core {
    descriptor owned;
    [[no_unique_address]] stream_options options;  // the next fields are stored in its last word
    atomic<bool> read_by_somebody{false};
    atomic<bool> written_by_somebody{false};
    // For descriptors other than sockets there are other calls.
    io_request::kind reads_by = io_request::receive;
    io_request::kind writes_by = io_request::send;

    // The flag: set while an operation has the turn.
    atomic<bool>& turn(bool to_read) noexcept {
        return to_read ? read_by_somebody : written_by_somebody;
    }
    void set_options(const stream_options& o) noexcept {
        WEFT_ASSERT(o.min_read_bytes_per_second == 0 || o.read_timeout != no_timeout,
                    "a stream has a min_read_bytes_per_second, and no read_timeout to put off");
        options = o;
    }
};
static_assert(sizeof(stream_core) <= 40);

// For a socket that is connected, or will be, or for a pipe; `kind` is io_entry::short_is_all or
// zero. The fd is closed if there is no memory.
result<descriptor> own_stream(int number, std::uint64_t kind) noexcept;
// For an fd from outside: the kind that is proven for it (io_entry.hpp).
std::uint64_t kind_of_socket(int number) noexcept;
result<std::shared_ptr<stream_core>> hold_stream(descriptor owned) noexcept;

}  // namespace weft::detail
