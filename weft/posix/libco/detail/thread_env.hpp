// stCoRoutineEnv_t: what a thread has for its coroutines: a loop.
//
// It is made by the first call that needs it, and goes with the thread: what is suspended then is
// unwound. It stays, and everything in it, where that cannot be: in a process that was forked, and
// where the thread is ended from within a coroutine (exit).
//
// Model: none, a counter of forks, which only the forking thread changes.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/posix/libco/co_routine_inner.h"
#include "weft/sched/loop.hpp"

struct stCoEpoll_t {
    stCoRoutineEnv_t* env;
};

struct stCoRoutineEnv_t {
    std::unique_ptr<stCoRoutine_t> own;  // represents the thread itself
    unsigned fork_count;
    weft::loop loop;
    stCoEpoll_t epoll{this};
    std::uint64_t resume_count = 0;

    stCoRoutineEnv_t();
    stCoRoutineEnv_t(const stCoRoutineEnv_t&) = delete;
    stCoRoutineEnv_t& operator=(const stCoRoutineEnv_t&) = delete;
    ~stCoRoutineEnv_t();

    bool runs_here() const noexcept { return weft::current_executor() == &loop; }
    bool is_of_this_process() const noexcept;
};

namespace weft::detail {

stCoRoutineEnv_t& env_here();  // throws bad_alloc
stCoRoutineEnv_t* find_env() noexcept;

}  // namespace weft::detail
