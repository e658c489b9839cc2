// stCoRoutine_t: a coroutine of libco: a fiber, and how far it is.
//
//   co_create ---> [fresh] -- co_resume --> runs -- co_yield_ct --> [parked] -- co_resume --> runs
//                                            | \--- poll, ... ----> [waits]  -- by the loop -> runs
//                                            +----- returns ------> [over]
//
// Its one idea: co_resume gives the fiber a turn where it stands, as the loop gives it one where
// its wait has ended: that turn is nested in whatever runs there, and comes back when the fiber
// suspends. So depth has no limit, and nothing here switches.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/fiber/fiber_core.hpp"
#include "weft/posix/libco/thread_env.hpp"

// The names of libco are global.
struct stCoRoutine_t {
    // How a name of the list stands for a coroutine that has one of its own; none: it is not set.
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
