#include "weft/posix/libco/co_routine.h"

#include <cstdarg>
#include <cstdio>
#include <memory>
#include <utility>

#include "weft/base/detail/line.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/posix/detail/poll_many.hpp"
#include "weft/posix/libco/detail/hooks.hpp"
#include "weft/posix/libco/detail/routine.hpp"
#include "weft/posix/libco/detail/share_stack.hpp"

using namespace weft;

namespace weft::detail {
namespace {

std::uint64_t routine_key() noexcept {
    static const std::uint64_t key = new_fiber_local_key();
    return key;
}

// A reference to a coroutine, in the function of its fiber. With that the coroutine goes if it has
// released itself.
class routine_ref {
public:
    explicit routine_ref(stCoRoutine_t& co) noexcept : co_(&co) {}
    routine_ref(routine_ref&& other) noexcept : co_(std::exchange(other.co_, nullptr)) {}
    routine_ref& operator=(routine_ref&&) = delete;
    ~routine_ref() {
        if (co_ == nullptr || !co_->released) return;
        co_->core->release();
        delete co_;
    }
    stCoRoutine_t& operator*() const noexcept { return *co_; }

private:
    stCoRoutine_t* co_;
};

// What the fiber runs.
struct routine_body {
    routine_ref self;

    void operator()() const {
        stCoRoutine_t& co = *self;
        add_local(routine_key(), &co, [](void*) noexcept {});
        libco_hooks::set(false);
        co.routine(co.arg);
    }
};

void make_fiber(stCoRoutine_t& co, executor& on) {
    const int bytes = co.attributes.stack_size;
    fiber_options o{.on = on, .launch = launch::deferred};
    if (bytes > 0) o.stack_bytes = static_cast<std::size_t>(bytes);
    if (co.attributes.share_stack != nullptr) o.shared = &co.attributes.share_stack->group;
    fiber f(routine_body{routine_ref(co)}, o);
    co.core = core_taken_from(f);
    co.core->detached = true;  // what leaves its function is for on_unhandled
}

// Waits for a co_resume.
class yield_operation {
public:
    static constexpr bool reports_stop = false;

    explicit yield_operation(stCoRoutine_t& co) noexcept : co_(&co) {}
    bool ready() const noexcept { return false; }
    bool start(waiter& w) noexcept {
        w.enlist("a co_resume", nullptr, co_,
                 [](waiter& gone) noexcept { gone.operation<stCoRoutine_t>().parked = nullptr; });
        co_->parked = &w;
        return true;
    }
    void take(const waiter* w, wait_status how) const {
        if (how == wait_status::stopped) throw_stopped(w->reason());
    }

private:
    stCoRoutine_t* co_;
};

coroutine_state state_of(const fiber_core& core) noexcept { return core.own()->word.state(); }

[[noreturn]] void fail_of(const stCoRoutine_t& co, const char* rule) noexcept {
    fail(rule, co.core->info());
}

// Which of what may be resumed it is not.
[[noreturn]] void refuse(const stCoRoutine_t& co) noexcept {
    switch (state_of(*co.core)) {
        case coroutine_state::running:
            fail_of(co, "co_resume of a coroutine that runs");
        case coroutine_state::suspended:
            fail_of(co, line()
                            .text("co_resume of a coroutine that waits for ")
                            .text(co.core->waiting->what())
                            .terminate()
                            .data());
        default:
            fail_of(co, "co_resume of a coroutine that has ended");
    }
}

// A turn of the loop, nested in what runs here.
void begin_here(stCoRoutine_t& co, stCoRoutineEnv_t& e) {
    const restore_on_exit put_back;
    this_thread_runs() = {nullptr, &e.loop};
    co.core->target = &e.loop;
    co.core->begin(true);
}

// Ends the fiber, whether it is suspended or has not begun, and drops it.
void end(stCoRoutine_t& co) noexcept {
    fiber_core* const core = std::exchange(co.core, nullptr);
    switch (state_of(*core)) {
        case coroutine_state::running:
            fail("the end of a coroutine by what it runs: co_release, co_reset", core->info(),
                 unknown_caller);
        case coroutine_state::suspended:
            if (co.env != find_env())
                fail("the end of another thread's coroutine", core->info(), unknown_caller);
            {
                const restore_on_exit put_back;
                this_thread_runs() = {nullptr, &co.env->loop};
                core->kind->end(*core);
            }
            break;
        default:
            break;
    }
    co.parked = nullptr;
    core->release();
}

}  // namespace

stCoRoutine_t* running_routine() noexcept {
    return fiber_core::current() != nullptr ? static_cast<stCoRoutine_t*>(find_local(routine_key()))
                                            : nullptr;
}

}  // namespace weft::detail

using detail::running_routine;

int co_create(stCoRoutine_t** co, const stCoRoutineAttr_t* attr, pfn_co_routine_t routine,
              void* arg) {
#if WEFT_EXCEPTIONS
    try {
#endif
        auto made = std::make_unique<stCoRoutine_t>();
        made->routine = routine;
        made->arg = arg;
        if (attr != nullptr) made->attributes = *attr;
        detail::make_fiber(*made, detail::env_here().loop);
        *co = made.release();
        return 0;
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        return -1;
    }
#endif
}

void co_resume(stCoRoutine_t* co) {
    if (co->core == nullptr) fail("co_resume of a thread's own coroutine", {}, unknown_caller);
    stCoRoutineEnv_t& e = detail::env_here();
    if (co->env == nullptr) co->env = &e;
    if (co->env != &e) detail::fail_of(*co, "co_resume of another thread's coroutine");
    ++e.resume_count;
    if (detail::state_of(*co->core) == coroutine_state::ready) return detail::begin_here(*co, e);
    waiter* const w = std::exchange(co->parked, nullptr);
    if (w == nullptr) detail::refuse(*co);
    // If not, a stop was first, and has posted it.
    if (w->claim()) detail::run_turn(e.loop, w->handle, w->of);
}

void co_yield_ct() {
    stCoRoutine_t* const co = running_routine();
    if (co == nullptr) fail("co_yield_ct outside of any coroutine", {}, unknown_caller);
    await(detail::yield_operation(*co));
}

void co_yield_of(stCoRoutine_t*) { co_yield_ct(); }
void co_yield_env(stCoRoutineEnv_t*) { co_yield_ct(); }

void co_release(stCoRoutine_t* co) {
    if (co->core == nullptr) fail("co_release of a thread's own coroutine", {}, unknown_caller);
    if (co == running_routine()) {
        co->released = true;
        return;
    }
    detail::end(*co);
    delete co;
}

void co_free(stCoRoutine_t* co) { co_release(co); }

void co_reset(stCoRoutine_t* co) {
    if (co->core == nullptr) fail("co_reset of a thread's own coroutine", {}, unknown_caller);
    detail::end(*co);
    co->env = nullptr;
    co->hooked = false;
    co->values.clear();
    co->environment.clear();
    detail::make_fiber(*co, detail::env_here().loop);
}

stCoRoutine_t* co_self() {
    if (stCoRoutine_t* const co = running_routine()) return co;
    const stCoRoutineEnv_t* const e = detail::find_env();
    return e != nullptr ? e->own.get() : nullptr;
}

stCoRoutine_t* GetCurrThreadCo() { return co_self(); }

int co_poll(stCoEpoll_t*, pollfd fds[], nfds_t nfds, int timeout_ms) {
    if (running_routine() == nullptr) return ::poll(fds, nfds, timeout_ms);
    return detail::poll_many(fds, nfds, detail::poll_deadline(timeout_ms));
}

int co_accept(int fd, sockaddr* addr, socklen_t* len) { return ::accept(fd, addr, len); }

void co_enable_hook_sys() {
    stCoRoutine_t* const co = running_routine();
    if (co == nullptr) return;
    co->hooked = true;
    detail::libco_hooks::set(true);
}

void co_disable_hook_sys() {
    stCoRoutine_t* const co = running_routine();
    if (co == nullptr) return;
    co->hooked = false;
    detail::libco_hooks::set(false);
}

bool co_is_enable_sys_hook() {
    const stCoRoutine_t* const co = running_routine();
    return co != nullptr && co->hooked;
}

stShareStack_t* co_alloc_sharestack(int count, int stack_size) {
    return new stShareStack_t{weft::shared_stack_group(
        count > 0 ? static_cast<std::size_t>(count) : 1,
        stack_size > 0 ? static_cast<std::size_t>(stack_size) : default_stack_bytes)};
}

void co_free_sharestack(stShareStack_t* stacks) { delete stacks; }

void co_log_err(const char* fmt, ...) {
    std::va_list rest;
    va_start(rest, fmt);
    std::vfprintf(stderr, fmt, rest);
    va_end(rest);
    std::fputc('\n', stderr);
}
