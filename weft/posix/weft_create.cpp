// weft_create, weft_join, weft_detach: fibers that are named by a number, as pthreads are.
//
// Design: a fiber's identity is in one table from before it begins until its join or its end.
#include <memory>
#include <mutex>

#include "weft/base/detail/atomic.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/posix/detail/begin.hpp"
#include "weft/posix/detail/caller.hpp"
#include "weft/posix/detail/identity.hpp"
#include "weft/posix/detail/stacks.hpp"
#include "weft/posix/detail/timespec.hpp"
#include "weft/stack/default_stacks.hpp"
#include "weft/sync/detail/timed.hpp"

namespace weft::detail {
namespace {

// What a fiber of weft.h runs.
struct started {
    own_identity self;
    weft_start_t start;
    void* arg;

    void operator()() const {
        if (!knows_itself()) return;
        self->core->detached = true;  // what leaves start is for on_unhandled
#if WEFT_EXCEPTIONS
        try {
            self->result = start(arg);
        } catch (const exit_request& r) {
            self->result = r.value;
        }
#else
        self->result = start(arg);
#endif
    }

private:
    bool knows_itself() const {
#if WEFT_EXCEPTIONS
        try {
            caller_here().id = self->id;
        } catch (const std::bad_alloc&) {
            self->lacks_memory = true;
            return false;
        }
#else
        caller_here().id = self->id;
#endif
        return true;
    }
};

// Whether a stack can be had now, so that in most cases the call fails and not the fiber. A fiber
// takes its stack when it begins: many fibers that are made and end in turn use the same one.
bool has_stack(const weft_attr_t* attr) noexcept {
    if (attr != nullptr && attr->stacks_ != nullptr) return true;
    const stack_allocator_ref from =
        default_stacks(attr != nullptr ? attr->stack_bytes_ : default_stack_bytes);
    const stack s = from.acquire();
    if (s) from.release(s);
    return static_cast<bool>(s);
}

fiber_options options_of(const weft_attr_t* attr, scheduler& on) noexcept {
    fiber_options o{.on = on, .launch = launch::deferred};
    if (attr == nullptr) return o;
    o.name = attr->name_;
    o.stack_bytes = attr->stack_bytes_;
    if (attr->stacks_ != nullptr) o.shared = &attr->stacks_->group;
    return o;
}

// The fiber is made and in the table, and has not begun.
identity& make_fiber(scheduler& on, const weft_attr_t* attr, weft_start_t start, void* arg) {
    auto made = std::make_unique<identity>();
    identities& all = identities::all();
    {
        const std::lock_guard held(all);
        all.add(*made);
    }
    struct unless_made {
        identities& all;
        identity* who;
        ~unless_made() {
            if (who == nullptr) return;
            const std::lock_guard held(all);
            all.remove(*who);
        }
    } undo{all, made.get()};
    fiber f(started{own_identity(*made), start, arg}, options_of(attr, on));
    made->core = core_taken_from(f);
    undo.who = nullptr;
    return *made.release();
}

}  // namespace

int begin_fiber(scheduler& on, weft_t& id, const weft_attr_t* attr, weft_start_t start, void* arg) {
    if (attr != nullptr && attr->stacks_ != nullptr && on.fixed_executor() == nullptr)
        return EINVAL;
    if (!has_stack(attr)) return EAGAIN;
    identity* who = nullptr;
#if WEFT_EXCEPTIONS
    try {
        who = &make_fiber(on, attr, start, arg);
    } catch (const std::bad_alloc&) {
        return EAGAIN;
    }
#else
    who = &make_fiber(on, attr, start, arg);
#endif
    if (attr != nullptr && attr->detached_ == WEFT_CREATE_DETACHED)
        who->how = identity::claim::detached;  // no other thread knows of it yet
    id = who->id;
    who->core->begin(false);
    return 0;
}

namespace {

int join(weft_t fiber, void** value, time_point until, bool tries) {
    may_end_here ends;
    identities& all = identities::all();
    const caller* const c = find_caller();
    const weft_t me = c != nullptr ? c->id : WEFT_NULL;
    identity* who = nullptr;
    identity* mine = nullptr;
    {
        const std::lock_guard held(all);
        who = all.find(fiber);
        if (who == nullptr) return ends.went_on(ESRCH);
        if (all.waits_for(fiber, me)) return ends.went_on(EDEADLK);
        if (who->how != identity::claim::joinable) return ends.went_on(EINVAL);
        if (tries && !who->over) return ends.went_on(EBUSY);
        who->how = identity::claim::joining;
        mine = all.find(me);
        if (mine != nullptr) mine->joins = fiber;
    }
    struct at_the_end {
        identities& all;
        identity& who;
        identity* mine;
        bool joined = false;
        ~at_the_end() {
            const std::lock_guard held(all);
            if (mine != nullptr) mine->joins = WEFT_NULL;
            if (joined)
                all.remove(who);  // N3
            else
                who.how = identity::claim::joinable;
        }
    };
    {
        at_the_end then{all, *who, mine};
        then.joined = await(timed<fiber_end_operation>(until, *who->core));
        if (!then.joined) return ends.went_on(ETIMEDOUT);
    }
    const int error = who->lacks_memory ? EAGAIN : 0;          // N1
    if (value != nullptr && error == 0) *value = who->result;  // N1
    release(*who);
    return ends.went_on(error);
}

int join_or_no_memory(weft_t fiber, void** value, time_point until, bool tries) {
#if WEFT_EXCEPTIONS
    try {
        return join(fiber, value, until, tries);
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
#else
    return join(fiber, value, until, tries);
#endif
}

}  // namespace
}  // namespace weft::detail

using namespace weft;

extern "C" {

int weft_create(weft_t* fiber, const weft_attr_t* attr, weft_start_t start, void* arg) {
    executor* const here = current_executor();
    scheduler* const on = here != nullptr && here != &detail::this_thread_host()
                              ? &here->default_scheduler()
                              : detail::loop_of_nobody();
    return on != nullptr ? detail::begin_fiber(*on, *fiber, attr, start, arg) : EAGAIN;
}

int weft_join(weft_t fiber, void** value) {
    return detail::join_or_no_memory(fiber, value, never, false);
}

int weft_tryjoin(weft_t fiber, void** value) {
    return detail::join_or_no_memory(fiber, value, never, true);
}

int weft_timedjoin(weft_t fiber, void** value, const timespec* until) {
    time_point deadline;
    if (!detail::time_point_of(*until, CLOCK_REALTIME, deadline)) return EINVAL;
    return detail::join_or_no_memory(fiber, value, deadline, false);
}

int weft_detach(weft_t fiber) {
    detail::identities& all = detail::identities::all();
    detail::identity* over = nullptr;
    {
        const std::lock_guard held(all);
        detail::identity* const who = all.find(fiber);
        if (who == nullptr) return ESRCH;
        if (who->how != detail::identity::claim::joinable) return EINVAL;
        who->how = detail::identity::claim::detached;
        if (who->over) {
            all.remove(*who);
            over = who;
        }
    }
    if (over != nullptr) detail::release_detached(*over);
    return 0;
}

weft_t weft_self(void) {
    const detail::caller* const c = detail::find_caller();
    return c != nullptr ? c->id : WEFT_NULL;
}

int weft_equal(weft_t a, weft_t b) { return a == b; }

int weft_yield(void) {
    if (!this_fiber::exists()) {
        detail::spin_yield();
        return 0;
    }
    const shield s;
    this_fiber::yield();
    return 0;
}

int weft_setname(const char* name) {
    if (!this_fiber::exists()) return ESRCH;
#if WEFT_EXCEPTIONS
    try {
        this_fiber::set_name(name);
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
#else
    this_fiber::set_name(name);
#endif
    return 0;
}

}  // extern "C"
