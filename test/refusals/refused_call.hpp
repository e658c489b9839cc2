// refused_call: a system call that fails from now on, for this thread and those that it starts.
//
// By a seccomp filter. Every call fails, or the n-th alone, or all from that one on: in the last
// two cases each call goes to a thread of this process that is not filtered, and counts.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::testing::refusals {

// Zero: each; -n: from the n-th on. False: the process may not ask for that.
[[nodiscard]] bool refuse(long call, int error, std::int64_t nth, std::atomic<std::uint64_t>& made);

}  // namespace weft::testing::refusals
