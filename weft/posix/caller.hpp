// caller: what the functions of weft.h know of the fiber or thread that calls them.
//
// Its one idea: most of it is kept by fibers anyway (fiber_local); what is left is three words,
// which who never uses them does not have.
//
// A fiber may end in any of the functions in which it waits: by a stop, which is thrown, or by a
// kill, which unwinds. Either destroys what stands in the frame, and the first of that is a
// may_end_here, which runs the handlers of the fiber while all their frames are still there.
#pragma once

#include <errno.h>

#include <new>

#include "weft/posix/weft.h"
#include "weft/wait/shield.hpp"

namespace weft::detail {

struct caller {
    weft_t id = WEFT_NOBODY;
    weft_cleanup* cleanups = nullptr;  // the innermost
    bool not_cancelled = false;        // has raised a shield
};

// Null: it has none yet.
caller* find_caller() noexcept;
caller& caller_here();  // throws bad_alloc

// Takes each out of the line before it runs it.
void run_cleanups() noexcept;

// Stands before anything else in a function in which its caller may be ended.
class may_end_here {
public:
    may_end_here() noexcept = default;
    may_end_here(const may_end_here&) = delete;
    may_end_here& operator=(const may_end_here&) = delete;
    ~may_end_here() {
        if (!went_on_) [[unlikely]]
            run_cleanups();
    }
    template <class T>
    T went_on(T result) noexcept {
        went_on_ = true;
        return result;
    }

private:
    bool went_on_ = false;
};

// What leaves weft_exit.
struct exit_request {
    void* value;
};

// A call of f, whose waits no cancel ends (but the end of the loop does), and which says how it
// went: what it throws is for want of memory. Only a wait on a shared stack takes any.
template <class F>
int uncancelled(F f) {
    may_end_here ends;
    const shield s;
#if WEFT_EXCEPTIONS
    try {
        return ends.went_on(f());
    } catch (const std::bad_alloc&) {
        return ends.went_on(ENOMEM);
    }
#else
    return ends.went_on(f());
#endif
}

}  // namespace weft::detail
