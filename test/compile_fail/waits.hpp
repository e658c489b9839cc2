// waits: a function that returns a task, and with -DCONTROL one that returns nothing.
#pragma once

#include "weft/task/task.hpp"

#ifdef CONTROL
inline constexpr auto waits = [] {};
#else
inline constexpr auto waits = []() -> weft::task<> { co_return; };
#endif
