// caller: what the functions of weft.h know of the fiber or thread that calls them.
//
// Design: fibers keep most of it anyway (fiber_local). The rest is three words, which a caller that
// never uses them does not have.
//
// A fiber may end in any of the functions in which it waits: by a stop, which is thrown, or by a
// kill, which unwinds. Either destroys the objects of the frame, and the first of them is a
// may_end_here, which runs the handlers of the fiber while all their frames are still there.
#pragma once

#include <errno.h>

#include <new>

#include "weft/posix/weft.h"
#include "weft/wait/shield.hpp"

namespace weft::detail {

struct caller {
    weft_t id = WEFT_NULL;
    weft_cleanup* cleanups = nullptr;  // the innermost
    bool not_cancelled = false;        // has raised a shield
};

// Null: the caller has none yet.
caller* find_caller() noexcept;
caller& caller_here();  // throws bad_alloc

// Takes each handler out of the list before it runs the handler.
void run_cleanups() noexcept;

// Declared before anything else in a function in which its caller may be ended.
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

// The exception that leaves weft_exit.
struct exit_request {
    void* value;
};

// Calls f with waits that no cancel ends (but the end of the loop does). Returns the error number
// of f, or ENOMEM for what f throws. Only a wait on a shared stack takes memory.
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
