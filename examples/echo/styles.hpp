// The styles of coroutine in which the echo session is written. Each file is a lesson of its own:
//
//   style     file                   where its buffer lies
//   switch    session_switch.cpp     in the session
//   task      session_task.cpp       in the C++20 coroutine frame
//   stackful  session_stackful.cpp   on the coroutine's own stack
//   shared    session_shared.cpp     on a stack that it shares with other sessions
#pragma once

#include <span>
#include <string_view>

#include "session.hpp"

namespace echo {

// Each returns a maker of sessions, which owns what its sessions share and must outlive them.
session_maker switch_sessions();
session_maker task_sessions();
session_maker stackful_sessions();
session_maker shared_sessions();

struct style {
    const char* name;
    session_maker (*sessions)();
};

std::span<const style> all_styles();
const style* find_style(std::string_view name);  // null when there is none

}  // namespace echo
