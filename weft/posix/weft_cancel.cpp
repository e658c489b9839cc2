// weft_exit, weft_cancel and the cleanup handlers: how a fiber of weft.h ends before its function
// returns.
//
// Design: an exit is an exception and a cancel is a request to stop, so both unwind the fiber.
#include <mutex>
#include <utility>

#include "weft/fiber/fiber.hpp"
#include "weft/posix/detail/caller.hpp"
#include "weft/posix/detail/identity.hpp"

using namespace weft;

extern "C" {

void weft_exit(void* value) {
    const detail::caller* const c = detail::find_caller();
    if (c == nullptr || c->id == WEFT_NULL)
        fail("weft_exit outside of a fiber of weft_create or weft_run", {}, unknown_caller);
#if WEFT_EXCEPTIONS
    const detail::may_end_here ends;
    throw detail::exit_request{value};
#else
    static_cast<void>(value);
    fail("weft_exit in a build without exceptions", {}, unknown_caller);
#endif
}

int weft_cancel(weft_t fiber) {
    detail::identities& all = detail::identities::all();
    detail::fiber_core* core = nullptr;
    {
        const std::lock_guard held(all);
        const detail::identity* const who = all.find(fiber);
        if (who == nullptr) return ESRCH;
        core = who->core;
        core->keep();
    }
    core->request_stop(stop_reason::user);
    core->release();
    return 0;
}

void weft_testcancel(void) {
#if WEFT_EXCEPTIONS
    detail::may_end_here ends;
    this_fiber::throw_if_stopped();
    ends.went_on(0);
#endif
}

int weft_setcancelstate(int state, int* before) {
    if (state != WEFT_CANCEL_ENABLE && state != WEFT_CANCEL_DISABLE) return EINVAL;
    detail::caller* c = detail::find_caller();
    const bool was = c != nullptr && c->not_cancelled;
    if (before != nullptr) *before = was ? WEFT_CANCEL_DISABLE : WEFT_CANCEL_ENABLE;
    const bool is = state == WEFT_CANCEL_DISABLE;
    if (was == is) return 0;
#if WEFT_EXCEPTIONS
    try {
        c = &detail::caller_here();
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
#else
    c = &detail::caller_here();
#endif
    c->not_cancelled = is;
    if (flow* const f = detail::flow_here()) is ? f->raise_shield() : f->lower_shield();
    return 0;
}

void weft_cleanup_enter_(weft_cleanup* here, void (*routine)(void*), void* arg) {
#if WEFT_EXCEPTIONS
    try {
#endif
        detail::caller& c = detail::caller_here();
        *here = {routine, arg, c.cleanups};
        c.cleanups = here;
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        fail("no memory for the first weft_cleanup_push of a fiber", {}, unknown_caller);
    }
#endif
}

void weft_cleanup_leave_(weft_cleanup* here, int execute) {
    detail::caller* const c = detail::find_caller();
    WEFT_ASSERT(c != nullptr && c->cleanups == here,
                "weft_cleanup_pop of another than the last weft_cleanup_push");
    c->cleanups = here->outer_;
    void (*const routine)(void*) = std::exchange(here->routine_, nullptr);
    if (execute != 0) routine(here->arg_);
}

}  // extern "C"
