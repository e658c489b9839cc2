// holder: who has a lock, as one word: a flow, or "a coroutine that runs in no flow".
//
// A C++20 coroutine that is resumed by hand belongs to no flow, and nothing tells one such from
// another: among these it is not noticed who unlocks what.
#pragma once

#include <cstdint>

#include "weft/sync/word_queue.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

using holder = std::uintptr_t;

// No flow has this address.
inline constexpr holder unknown_holder = word_queue::unit;
static_assert(alignof(flow) >= word_queue::unit, "a flow's address is a value of a word_queue");

// The plain thread, or the unknown.
holder holder_without_flow() noexcept;

// Whoever runs here.
inline holder holder_here() noexcept {
    const flow* f = current_flow();
    return f != nullptr ? reinterpret_cast<holder>(f) : holder_without_flow();
}

// Whoever runs here has got a lock, or given one up: a flow that ends with one ends the program.
inline void count_lock(int n) noexcept {
    if (flow* f = current_flow()) f->locks += static_cast<std::uint32_t>(n);
}

// What `what` (a thing and a rule: "unlock of a mutex") was done by, and against whom. Ends the
// program.
[[noreturn]] void fail_against(const char* what, holder who, const char* but, holder whom) noexcept;

}  // namespace weft::detail
