// stCoRoutine_t: a coroutine of libco: a fiber, and how far it is.
//
//   co_create ---> [fresh] -- co_resume --> runs -- co_yield_ct --> [parked] -- co_resume --> runs
//                                            | \--- poll, ... ----> [waits]  -- by the loop -> runs
//                                            +----- returns ------> [over]
//
// Design: co_resume gives the fiber a turn at its call site, as the loop gives the fiber a turn
// when its wait has ended. The turn is nested in the code that runs there, and returns when the
// fiber suspends. Depth has therefore no limit, and nothing here switches.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/fiber/detail/fiber_core.hpp"
#include "weft/posix/libco/detail/thread_env.hpp"

// The names of libco are global.
struct stCoRoutine_t {
    // Maps a name of the list to the coroutine's own value; none: the variable is not set.
    using variables = std::map<std::string, std::optional<std::string>, std::less<>>;

    weft::detail::fiber_core* core = nullptr;  // a reference of its own; null for a thread's own
    pfn_co_routine_t routine = nullptr;
    void* arg = nullptr;
    stCoRoutineAttr_t attributes;
    stCoRoutineEnv_t* env = nullptr;  // from the first resume on; of a thread's own always
    weft::waiter* parked = nullptr;   // in co_yield_ct
    bool hooked = false;
    bool released = false;  // by itself: it goes when it is over
    std::vector<void*> values;
    variables environment;

    stCoRoutine_t() = default;
    stCoRoutine_t(const stCoRoutine_t&) = delete;
    stCoRoutine_t& operator=(const stCoRoutine_t&) = delete;
};

namespace weft::detail {

// The coroutine that runs here; null in none. Allocates nothing.
stCoRoutine_t* running_routine() noexcept;

}  // namespace weft::detail
