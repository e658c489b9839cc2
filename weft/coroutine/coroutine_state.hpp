// coroutine_state: how far a coroutine has come.
//
//                resume               resume
//     ready ---------------> running <-------> suspended      running: also while it waits for one
//       |                    |  yield ^            |          that it resumed itself
//       | kill        end    |                     | kill
//       v                    v                     v
//     killed                done              (running, unwinds) ---> killed
#pragma once

#include <cstdint>

namespace weft {

enum class coroutine_state : std::uint8_t {
    empty,      // a handle without a coroutine
    ready,      // made, not started: it has no stack yet
    running,    // it runs, or it resumed another that runs
    suspended,  // it yielded
    done,       // its body returned or threw
    killed,     // a kill unwound it, or came before it started
};

}  // namespace weft
