// The styles in which the echo session is written. Each file is a lesson of its own:
//
//   style     file                   where the buffer is stored
//   switch    session_switch.cpp     in the session
//   stackful  session_stackful.cpp   on the coroutine's own stack
//   shared    session_stackful.cpp   on a stack that it shares with other sessions
//   fiber     session_fiber.cpp      on the fiber's stack
//   task      session_task.cpp       in the C++20 coroutine frame
//
// The first three are primitive: their bodies suspend by themselves, and session.hpp drives them.
// Fiber and task are as a server is written, and are run by epoll and by io_uring.
#pragma once

#include <span>
#include <string_view>

#include "weft/io/io_driver.hpp"
#include "weft/io/tcp_stream.hpp"
#include "weft/wait/nursery.hpp"

namespace echo {

// Each style starts a session with a client, as a child of the nursery.
void begin_switch(weft::nursery& sessions, weft::tcp_stream client);
void begin_stackful(weft::nursery& sessions, weft::tcp_stream client);
void begin_shared(weft::nursery& sessions, weft::tcp_stream client);
void begin_fiber(weft::nursery& sessions, weft::tcp_stream client);
void begin_task(weft::nursery& sessions, weft::tcp_stream client);

struct style {
    const char* name;
    void (*begin)(weft::nursery&, weft::tcp_stream);
    weft::io_kind io = weft::io_kind::epoll;
};

std::span<const style> all_styles();
const style* find_style(std::string_view name);  // null when there is none
const char* refusal_of(const style& s);          // why the system lacks the style; null: usable

}  // namespace echo
