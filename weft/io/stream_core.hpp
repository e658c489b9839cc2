// stream_core: what both halves of a stream share: its descriptor, its limits, and the turn to read
// and the turn to write.
//
// Its one idea: one party reads and one writes at a time, and each turn is a flag that is taken or
// refused in one exchange. The stream has it on the heap, so that a stream may be moved while
// operations on it wait; those have its address.
//
//   detail::stream_core& c = ...;
//   if (c.turn(false).exchange(true)) return operation_in_progress;
//
// Model: none, each flag is taken or refused in one exchange, and finds misuse.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/base/assert.hpp"
#include "weft/base/atomic.hpp"
#include "weft/base/clock.hpp"
#include "weft/base/platform.hpp"
#include "weft/base/result.hpp"
#include "weft/io/descriptor.hpp"
#include "weft/io/io_request.hpp"

namespace weft {

struct stream_options {
    duration read_timeout = duration::max();   // of one operation; max: none
    duration write_timeout = duration::max();  //
    // Bytes a second; zero: none. With it the read_timeout, which there must be then, is how long a
    // peer may be behind, in read_exact and read_until: each byte that comes while they wait puts
    // their deadline off by 1/min_rate s, but no further than read_timeout from then. So a peer
    // that sends a byte now and then is timed_out, and one that is slow and steady is served,
    // however long it takes.
    std::uint32_t min_rate = 0;
};

namespace detail {

// What both halves of a stream share: the turn to read and the turn to write.
struct stream_core {
    descriptor owned;
    [[no_unique_address]] stream_options options;  // what follows lies in its last word
    atomic<bool> read_by_somebody{false};
    atomic<bool> written_by_somebody{false};
    // What is no socket has other calls.
    io_request::kind reads_by = io_request::receive;
    io_request::kind writes_by = io_request::send;

    // Whether a party has it.
    atomic<bool>& turn(bool to_read) noexcept {
        return to_read ? read_by_somebody : written_by_somebody;
    }
    void set_options(const stream_options& o) noexcept {
        WEFT_ASSERT(o.min_rate == 0 || o.read_timeout != duration::max(),
                    "a stream has a min_rate, and no read_timeout to put off");
        options = o;
    }
};
static_assert(sizeof(stream_core) <= 40);

// Of a socket that is connected, or will be, or of a pipe; `kind` is io_entry::short_is_all or
// zero. It is closed if there is no memory.
result<descriptor> own_stream(int number, std::uint64_t kind) noexcept;
// Of a number that came from elsewhere: what is proven of it (io_entry.hpp).
std::uint64_t kind_of_socket(int number) noexcept;
result<std::shared_ptr<stream_core>> hold_stream(descriptor owned) noexcept;

}  // namespace detail
}  // namespace weft
