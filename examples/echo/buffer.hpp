// buffer: a session receives into it and sends from it; counts constructions and destructions.
//
// The bytes are inside the object, not behind a pointer, so that a buffer that is a local variable
// is where the coroutine's locals are: in the session (switch), on the coroutine's own stack
// (stackful, fiber), on a stack shared with others (shared), in the coroutine frame (task).
//
// The counters are plain: a server process runs one style in one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace echo {

struct buffer {
    static constexpr std::size_t capacity_bytes = 4096;

    static inline std::uint64_t constructed = 0;
    static inline std::uint64_t destroyed = 0;

    buffer() noexcept { ++constructed; }
    ~buffer() { ++destroyed; }
    buffer(const buffer&) = delete;
    buffer& operator=(const buffer&) = delete;

    std::size_t size_bytes = 0;  // for a session that keeps the size here
    std::byte data[capacity_bytes];
};

}  // namespace echo
