// stackless: a coroutine that is one int. Its body is a switch that a few macros write.
//
// Design: the object stores the line at which its body was left; WEFT_REENTER jumps back to it.
// There is no stack and no frame, so no local variable survives a yield: a value that must survive
// is a member. In return, creating, copying and destroying one costs nothing, and resuming it costs
// a jump.
//
//   WEFT_REENTER(c) { ... }   c: a stackless, an object derived from it, or a pointer to one.
//   WEFT_YIELD statement      Sets the resume point, runs the statement, and jumps to after the
//                             body, unless the statement returns or throws. The statement may start
//                             the operation that will resume the object, pass the object on or
//                             destroy it. `break` or `continue` in it only end the statement.
//                             WEFT_YIELD; alone is valid.
//   WEFT_STOP;                Leaves the body; the object is done.
//   WEFT_FORK statement       Runs the statement, in which a copy of the object is a child that
//                             will continue after the fork; then continues there itself. Until the
//                             next yield, is_parent() and is_child() distinguish the two.
//
// A body that is left in any other way than by a yield is done: at its end, by return, goto, or an
// exception. WEFT_REENTER then skips it; assign a new stackless to start again. An exception from
// the statement of a yield leaves the object suspended there: by then another owner may have it.
//
// A yield may be in a loop, a branch or a block, and in a try block if that jumps into no handler
// and past no initialised local: these jumps are compile errors, as all that a switch cannot jump
// over. Also compile errors: two yields on one line, a yield in the statement of a yield, two
// WEFT_REENTER in one function (use two functions; a body may call another body's at any point).
//
// Limits: a state belongs to one body. Not thread-safe. The object must outlive a run of its body,
// unless the statement of a yield passes it on or destroys it.
//
//   struct session : weft::stackless {          // as a base, or as a member: WEFT_REENTER(state_)
//       int n = 0;                              // survives yields
//       int operator()() {
//           WEFT_REENTER(this) {
//               while (n < 3)
//                   WEFT_YIELD return n++;      // the next call continues after this line
//           }
//           return -1;                          // reached when the body is left, and from then on
//       }
//   };
#pragma once

namespace weft {

namespace detail {
class reentry;
}

class stackless {
public:
    constexpr stackless() noexcept = default;  // not started

    constexpr bool done() const noexcept { return point_ == done_point; }
    constexpr bool is_child() const noexcept { return point_ < done_point; }
    constexpr bool is_parent() const noexcept { return !is_child(); }

private:
    friend class detail::reentry;

    // 0       not started
    // line    left by the yield on that line
    // -1      done
    // -1-line a child of the fork on that line
    static constexpr int done_point = -1;

    int point_ = 0;
};

static_assert(sizeof(stackless) == 4);

namespace detail {

// One run of a body, from WEFT_REENTER until the body is left.
//
// Invariants:
// I1  at the end of a run the object is either suspended, and then no longer accessed, or done
class reentry {
public:
    static constexpr int begin_point = 0;
    static constexpr int done_point = stackless::done_point;
    static constexpr int child_point(int line) { return -1 - line; }

    explicit reentry(stackless& c) noexcept : point_(c.point_) {}
    explicit reentry(stackless* c) noexcept : point_(c->point_) {}
    reentry(const reentry&) = delete;
    reentry& operator=(const reentry&) = delete;
    ~reentry() {
        if (!suspended_) point_ = done_point;  // I1
    }

    int point() const noexcept { return point_; }

    void suspend_at(int line) noexcept {
        point_ = line;
        suspended_ = true;
    }
    bool is_suspended() const noexcept { return suspended_; }

    void fork_at(int line) noexcept {
        point_ = child_point(line);
        forking_ = true;
    }
    bool is_forking() const noexcept { return forking_; }
    void forked(int line) noexcept {
        point_ = line;
        forking_ = false;
    }

private:
    int& point_;
    bool suspended_ = false;
    bool forking_ = false;
};

}  // namespace detail
}  // namespace weft

// The body is the last statement of the switch, so case labels in it belong to this switch.
#define WEFT_REENTER(c)                                                    \
    switch (::weft::detail::reentry weft_reentry{c}; weft_reentry.point()) \
    case ::weft::detail::reentry::done_point:                              \
        if (true) {                                                        \
        weft_leave:                                                        \
            __attribute__((unused));                                       \
            break;                                                         \
        } else                                                             \
        case ::weft::detail::reentry::begin_point:

#define WEFT_STOP __extension__({ goto weft_leave; })

// The common part of a yield and a fork. The first pass does `enter`, runs the statement and does
// `step`; the resumed pass enters at the case and continues after all of it. The innermost loop
// catches `break` and `continue`, and its variable, which no case may jump over, makes a second
// yield in the statement an error.
//
// GCC derives the value of `entered` on both paths and drops the tests, Clang does not. So for
// Clang the case is in a branch of its own. An `if` with an `else` makes GCC warn about a user's
// `if` around it; in Clang the warning can be turned off.
// clang-format off
#if defined(__clang__)
#define WEFT_STACKLESS_POINT(value, enter, entered, step)           \
    for (enter; entered; step)                                      \
        if (false)                                                  \
        case value:                                                 \
            break;                                                  \
        _Pragma("clang diagnostic push")                            \
        _Pragma("clang diagnostic ignored \"-Wdangling-else\"")     \
        else                                                        \
        _Pragma("clang diagnostic pop")                             \
            for (bool weft_once = true; weft_once; weft_once = false)
#else
#define WEFT_STACKLESS_POINT(value, enter, entered, step)           \
    for (enter; entered;)                                           \
    case value:                                                     \
        for (; entered; step)                                       \
            for (bool weft_once = true; weft_once; weft_once = false)
#endif
// clang-format on

#define WEFT_YIELD                                                                                 \
    WEFT_STACKLESS_POINT(__LINE__, weft_reentry.suspend_at(__LINE__), weft_reentry.is_suspended(), \
                         __extension__({ goto weft_leave; }))

// The first pass continues at the point where the child will.
#define WEFT_FORK                                                                   \
    WEFT_STACKLESS_POINT(::weft::detail::reentry::child_point(__LINE__),            \
                         weft_reentry.fork_at(__LINE__), weft_reentry.is_forking(), \
                         weft_reentry.forked(__LINE__))
