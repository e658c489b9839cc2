// shared_stack_group: coroutines that take turns on shared stacks and keep only the bytes in use.
//
// Design: a suspended coroutine needs only the live part of its stack, a few hundred bytes, and not
// the pages around it. The coroutines of a group run on the group's stacks. Before another runs
// there, the live part of the previous one is copied out, exactly, and it is copied back when that
// coroutine is resumed.
//
//      shared stack               copied out
//      +-----------+ top    +------+  +------+
//      | live part |  <-->  | of A |  | of B |   from block_cache up to 1 KiB,
//      +-----------+ sp     +------+  +------+   from short lists by size above
//      |   free    |
//      +-----------+ limit
//
// While A is copied out, the address of a local of A points into the coroutine that runs there now.
// So:
// - no object of weft's is on a shared stack, and no pointer of weft's points into one (values
//   travel in control blocks);
// - a body must not pass such an address to code that uses it while the body is suspended. I/O into
//   a local buffer is done after the coroutine has resumed (readiness, not completion).
// A debug or ASan build copies out at every suspension and poisons the vacated stack, so that the
// use of an escaped address is reported: at once under ASan, at the next resume otherwise (writes
// only).
//
// If there is no memory to copy out a live part, a resume throws bad_alloc and has no effect. A
// kill, a yield to a resumer on the same stack and the wake of a fiber cannot report it, and abort
// the program.
//
// Coroutines may be made on any thread, concurrently too.
//
// Limits: all are resumed, and end, on the thread that resumes first. The group outlives its
// coroutines; once it has none, it may be destroyed. stats() may be called on any thread. switch_to
// is refused if one of the two coroutines is on a shared stack, resume_with between coroutines of
// one stack. No stack annotations: ASan does not see overflows within a shared stack.
//
//   weft::shared_stack_group group;
//   weft::coroutine<> c(body, {.shared = &group});
//   weft::fiber f(session, {.shared = &group});     // its waits move away: see off_stack.hpp
//
// Model: test/model/shared_seats_test.cpp
#pragma once

#include <cstddef>

#include "weft/base/detail/owned.hpp"
#include "weft/stack/stack.hpp"

namespace weft {

class shared_stack_group;

namespace detail {
struct shared_group;
shared_group& group_of(shared_stack_group& group) noexcept;
}  // namespace detail

// What a group has now, and what it has copied.
struct shared_stack_stats {
    std::size_t coroutine_count;  // that have a seat, started or not
    std::size_t saved_bytes;      // live parts that are copied out now
    std::size_t copy_count;       // live parts copied, either way, so far
    std::size_t spare_bytes;      // cached for later live parts above 1 KiB: at most 256 KiB
};

class shared_stack_group {
public:
    // Throws bad_alloc. The stacks are the process's own (default_stacks), taken at first use.
    explicit shared_stack_group(std::size_t stack_count = 1,
                                std::size_t stack_bytes = default_stack_bytes);
    ~shared_stack_group();  // aborts if one of its coroutines still exists
    shared_stack_group(const shared_stack_group&) = delete;
    shared_stack_group& operator=(const shared_stack_group&) = delete;

    shared_stack_stats stats() const noexcept;

private:
    friend detail::shared_group& detail::group_of(shared_stack_group&) noexcept;
    detail::owned<detail::shared_group> group_;
};

}  // namespace weft
