// opening: what the waits of hooked calls have in common: the entry of a descriptor in weft/io's
// table, and how a wait ends that a stop has ended.
//
// Model: none, one lock has one opener at a time, and guards all that is shared.
#pragma once

#include <chrono>

#include "weft/hook/readiness.hpp"

namespace weft::hook {

// How long to wait for what no driver can watch, before it is asked again.
inline constexpr auto blind_wait = std::chrono::milliseconds(5);

// The opening of a number, and whether it was made here; empty if there can be none.
descriptor_ref opening_of(int fd, bool& fresh) noexcept;

// A call found nothing: the flags are clear until the next event, which may have come already.
void spend(const descriptor_ref& of, sight seen, bool fresh, std::uint64_t flags) noexcept;

// The answer for a wait that a stop has ended: ECANCELED, or ETIMEDOUT for the deadline of a scope.
int why_stopped(const waiter* w) noexcept;

// Whether nothing can wait here, as the fiber is being ended, or this is none.
bool is_ending() noexcept;

// What the call says. If it was a stop that has ended the wait others run first, and it may be
// that weft::stopped is thrown (stops.hpp).
int after_wait(int why);

}  // namespace weft::hook
