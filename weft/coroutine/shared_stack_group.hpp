// shared_stack_group: coroutines that take turns on common stacks and keep only what they use.
//
// Its one idea: a suspended coroutine needs the live part of its stack, a few hundred bytes, and
// not the pages around it. Coroutines of a group run on one of its stacks; when another is to run
// there, the live part of the one before is copied out, exactly, and copied back when it is
// resumed.
//
//      common stack               copied out
//      +-----------+ top    +------+  +------+
//      | live part |  <-->  | of A |  | of B |   from block_cache up to 1 KiB,
//      +-----------+ sp     +------+  +------+   from short lists by size above
//      |   free    |
//      +-----------+ limit
//
// While A is copied out, an address of a local of A's points into whatever runs there now. So:
// - nothing of weft's lies on a shared stack, nor points into one (values travel in control
// blocks);
// - a body must not give such an address to anybody who uses it while the body is suspended. I/O
// into
//   a local buffer is done after the coroutine is back (readiness, not completion).
// A debug or ASan build copies out at every suspension and poisons what was left, so that the use
// of an escaped address is reported: at once under ASan, at the next resume otherwise (writes
// only).
//
// Without memory to copy out what lies on the stack, a resume throws bad_alloc, and nothing has
// changed. A kill, a yield to a resumer on the same stack and the wake of a fiber cannot report it,
// and end the program.
//
// Coroutines are made on any thread, also several at once. Limits: they all are resumed, and end,
// on the thread that resumes first. The group outlives them; statistics() may be asked on any
// thread, and once it has no coroutines the group may be destroyed. switch_to and resume_with are
// refused between coroutines of one stack. No stack annotations: ASan does not see overflows within
// a shared stack.
//
// Model: test/model/shared_seats_test.cpp
//
//   weft::shared_stack_group group;
//   weft::coroutine<> c(body, {.shared = &group});
//   weft::fiber f(session, {.shared = &group});     // its waits move away: see off_stack.hpp
#pragma once

#include <cstddef>
#include <memory>

#include "weft/stack/stack.hpp"

namespace weft {

class shared_stack_group;

namespace detail {
struct shared_group;
shared_group& group_of(shared_stack_group& group) noexcept;
}  // namespace detail

struct shared_stack_statistics {
    std::size_t coroutines;   // that have a seat, started or not
    std::size_t saved_bytes;  // live parts that are copied out now
    std::size_t copies;       // live parts copied, either way, so far
    std::size_t spare_bytes;  // kept for live parts above 1 KiB to come: at most 256 KiB
};

class shared_stack_group {
public:
    // Throws bad_alloc. The stacks are the process's own (default_stacks), taken at first use.
    explicit shared_stack_group(std::size_t stack_count = 1,
                                std::size_t stack_bytes = default_stack_bytes);
    ~shared_stack_group();  // aborts while one of its coroutines lives
    shared_stack_group(const shared_stack_group&) = delete;
    shared_stack_group& operator=(const shared_stack_group&) = delete;

    shared_stack_statistics statistics() const noexcept;

private:
    friend detail::shared_group& detail::group_of(shared_stack_group&) noexcept;
    std::unique_ptr<detail::shared_group> group_;
};

}  // namespace weft
