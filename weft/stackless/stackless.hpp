// stackless: a coroutine that is one int. Its body is a switch that a few macros write.
//
// The one idea: the object remembers the line at which its body was left; WEFT_REENTER jumps back
// to it. There is no stack and no frame, so that nothing local survives a yield: what must survive
// is a member. In return to create, copy and destroy one costs nothing, and to resume it costs a
// jump.
//
//   struct session : weft::stackless {          // as a base, or as a member: WEFT_REENTER(state_)
//       int n = 0;                              // lives across yields
//       int operator()() {
//           WEFT_REENTER(this) {
//               while (n < 3)
//                   WEFT_YIELD return n++;      // the next call goes on behind this line
//           }
//           return -1;                          // reached when the body is left, and ever after
//       }
//   };
//
//   WEFT_REENTER(c) { ... }   c: a stackless, an object derived from it, or a pointer to one.
//   WEFT_YIELD statement      Sets the place to go on, runs the statement, and leaves for behind
//                             the body, unless the statement returns or throws. It may start what
//                             will resume the object, hand the object on or destroy it. `break` or
//                             `continue` in it merely end it. WEFT_YIELD; alone is fine.
//   WEFT_STOP;                Leaves the body for good.
//   WEFT_FORK statement       Runs the statement, in which a copy of the object is a child that
//                             will go on behind the fork, then goes on there itself: tell them
//                             apart by is_parent() and is_child(), until the next yield.
//
// A body that is left in any other way than by a yield is done: at its end, by return, goto, or an
// exception. Then WEFT_REENTER skips it; assign a new stackless to begin again. An exception out of
// the statement of a yield leaves the object suspended there: by then it may be someone else's.
//
// Yields may stand in loops, branches and blocks, and in a try block where no handler or
// initialised local is jumped into: these are compile errors, as everything that a switch cannot
// jump over is. Also compile errors: two yields on one line, a yield in the statement of a yield,
// two WEFT_REENTER in one function (put them into two; a body may call another one's at will).
//
// A state is of one body only. Not thread-safe. The object must outlive a run of its body, unless
// the statement of a yield gives it away.
#pragma once

namespace weft {

namespace detail {
class reentry;
}

class stackless {
public:
    constexpr stackless() noexcept = default;  // not yet begun

    constexpr bool done() const noexcept { return point_ == done_point; }
    constexpr bool is_child() const noexcept { return point_ < done_point; }
    constexpr bool is_parent() const noexcept { return !is_child(); }

private:
    friend class detail::reentry;

    // 0       at the beginning
    // line    left by the yield on that line
    // -1      done
    // -1-line a child of the fork on that line
    static constexpr int done_point = -1;

    int point_ = 0;
};

static_assert(sizeof(stackless) == 4);

namespace detail {

// One run of a body, from WEFT_REENTER to where it is left.
//
// Invariants:
// I1  at the end of a run the object is either suspended, and then no longer touched, or done
class reentry {
public:
    static constexpr int begin_point = 0;
    static constexpr int done_point = stackless::done_point;
    static constexpr int child_point(int line) { return -1 - line; }

    explicit reentry(stackless& c) noexcept : point_(c.point_) {}
    explicit reentry(stackless* c) noexcept : point_(c->point_) {}
    reentry(const reentry&) = delete;
    ~reentry() {
        if (!suspended_) point_ = done_point;  // I1
    }

    int point() const noexcept { return point_; }

    void suspend_at(int line) noexcept {
        point_ = line;
        suspended_ = true;
    }
    bool suspended() const noexcept { return suspended_; }

    void fork_at(int line) noexcept {
        point_ = child_point(line);
        forking_ = true;
    }
    bool forking() const noexcept { return forking_; }
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

// The body is the last statement of the switch: case labels in it are its own.
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

// What a yield and a fork have in common. The first pass does `enter`, runs the statement and does
// `step`; the resumed pass comes in at the case and goes on behind it all. The innermost loop
// catches `break` and `continue`, and its variable, which no case may jump over, keeps a second
// yield out of the statement.
//
// GCC finds that `entered` is known on either way and drops the tests, Clang does not. So for Clang
// the case stands in a branch of its own: but an `if` with an `else` makes GCC warn of the user's
// `if` around it, which Clang can be told not to do.
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

#define WEFT_YIELD                                                                              \
    WEFT_STACKLESS_POINT(__LINE__, weft_reentry.suspend_at(__LINE__), weft_reentry.suspended(), \
                         __extension__({ goto weft_leave; }))

// The first pass goes on where the child will.
#define WEFT_FORK                                                                \
    WEFT_STACKLESS_POINT(::weft::detail::reentry::child_point(__LINE__),         \
                         weft_reentry.fork_at(__LINE__), weft_reentry.forking(), \
                         weft_reentry.forked(__LINE__))
