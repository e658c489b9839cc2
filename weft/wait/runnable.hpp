// runnable: what an executor runs, and how it gets the layout of a coroutine.
//
// Design: everything that can be run is a std::coroutine_handle<>. The handle of a C++20 coroutine
// is its frame; everything else (a fiber, a message between threads, a timer's callback) begins
// with the two words of a frame, so that an executor makes one kind of call:
//
//      handle ---> +0 | resume  |   called as resume(frame)     the layout of GCC, Clang and MSVC;
//                  +8 | destroy |   called as destroy(frame)    a test says so for each compiler
//
// A runnable adds the link of a queue, so posting allocates nothing.
//
// Limits: it belongs to the executor from post() until it is run, and is in one queue at a time.
//
//   weft::runnable turn;
//   turn.handle = suspended;             // a std::coroutine_handle<>
//   executor.post(turn);
#pragma once

#include <coroutine>

#include "weft/base/forward_queue.hpp"

namespace weft {

struct flow;

struct runnable : forward_node<> {
    std::coroutine_handle<> handle;  // resumed once for each post
    flow* of = nullptr;  // the flow that has the turn; null: outside any flow (flow.hpp)
};

// The same without the link of a queue.
struct ready_turn {
    std::coroutine_handle<> handle;
    flow* of = nullptr;
};

namespace detail {

// The base of everything that is run like a C++20 coroutine and is none.
struct frame {
    void (*resume)(frame*);
    void (*destroy)(frame*);

    std::coroutine_handle<> handle() noexcept {
        return std::coroutine_handle<>::from_address(this);
    }
};

}  // namespace detail
}  // namespace weft
