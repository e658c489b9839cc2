#include "weft/posix/libco/detail/thread_env.hpp"

#include <algorithm>
#include <memory>
#include <thread>

#include "weft/base/platform.hpp"
#include "weft/posix/libco/detail/hooks.hpp"
#include "weft/posix/libco/detail/routine.hpp"

namespace weft::detail {
namespace {

// How often the process was forked, counted in the child. Orders: relaxed, the child has one thread
// when it counts.
constinit atomic<unsigned> forks{0};

// Before main: the first use of a static waits for its initialisation, and would do so between two
// uses of a thread-local. The call fails for want of memory; a fork is then not noticed.
__attribute__((constructor)) void watch_forks() noexcept {
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
}

unsigned count_of_forks() noexcept { return forks.load(std::memory_order_relaxed); }

struct env_of_thread {
    stCoRoutineEnv_t* env = nullptr;
    ~env_of_thread() {
        if (env != nullptr && env->is_of_this_process() && !env->runs_here()) delete env;
        env = nullptr;
    }
};
thread_local env_of_thread of_this_thread;

}  // namespace

// A parent's env has a loop that must not run here; the env stays in use by code that runs in it.
WEFT_NOINLINE stCoRoutineEnv_t* find_env() noexcept {
    stCoRoutineEnv_t* const e = of_this_thread.env;
    return e != nullptr && (e->is_of_this_process() || e->runs_here()) ? e : nullptr;
}

stCoRoutineEnv_t& env_here() {
    if (stCoRoutineEnv_t* const e = find_env()) return *e;
    libco_hooks::begin();
    auto made = std::make_unique<stCoRoutineEnv_t>();
    return *(of_this_thread.env = made.release());
}

}  // namespace weft::detail

stCoRoutineEnv_t::stCoRoutineEnv_t()
    : own(std::make_unique<stCoRoutine_t>()), fork_count(weft::detail::count_of_forks()) {
    own->env = this;
}

stCoRoutineEnv_t::~stCoRoutineEnv_t() = default;

bool stCoRoutineEnv_t::is_of_this_process() const noexcept {
    return fork_count == weft::detail::count_of_forks();
}

void co_init_curr_thread_env() { weft::detail::env_here(); }

stCoRoutineEnv_t* co_get_curr_thread_env() { return weft::detail::find_env(); }

stCoEpoll_t* co_get_epoll_ct() { return &weft::detail::env_here().epoll; }

void co_eventloop_wake(stCoEpoll_t* ctx) { ctx->env->loop.stop(); }

// What pfn reads may be changed by a thread that notifies no loop. co_eventloop therefore calls pfn
// again after as long as nothing has happened already, from a millisecond to a second.
void co_eventloop(stCoEpoll_t* ctx, pfn_co_eventloop_t pfn, void* arg) {
    using namespace std::chrono_literals;
    stCoRoutineEnv_t& e = *ctx->env;
    if (&e != weft::detail::find_env())
        weft::fail("co_eventloop of another thread's loop", {}, weft::unknown_caller);
    if (e.runs_here()) weft::fail("co_eventloop in a coroutine", {}, weft::unknown_caller);
    if (pfn == nullptr)
        for (;;) e.loop.run_once(weft::never);
    weft::duration pause = 1ms;
    for (;;) {
        const std::uint64_t resumed = e.resume_count;
        const bool ran = e.loop.run_once(weft::after(e.loop.now(), pause));
        if (pfn(arg) == -1) return;
        const bool idle = !ran && e.resume_count == resumed;
        pause = idle ? std::min<weft::duration>(2 * pause, 1s) : 1ms;
    }
}
