// runnable: what an executor runs, and what it takes to look like a coroutine.
//
// Its one idea: whatever can be run is a std::coroutine_handle<>. That of a C++20 coroutine is its
// frame; everything else (a fiber, a message between threads, a timer's callback) begins with the
// two words that such a frame begins with, so that an executor makes one kind of call:
//
//      handle ---> +0 | resume  |   called as resume(frame)     the layout of GCC, Clang and MSVC;
//                  +8 | destroy |   called as destroy(frame)    a test says so for each compiler
//
// A runnable adds the room to be queued, so that posting allocates nothing. It belongs to the
// executor from post() until it is run, and is in one queue at a time.
#pragma once

#include <coroutine>

#include "weft/base/forward_queue.hpp"

namespace weft {

struct flow;

struct runnable : forward_node<> {
    std::coroutine_handle<> handle;  // resumed once for each post
    flow* of = nullptr;              // in whose turn; null: in nobody's (see flow.hpp)
};

// The same without room to be queued.
struct ready_turn {
    std::coroutine_handle<> handle;
    flow* of = nullptr;
};

namespace detail {

// What is not a C++20 coroutine derives from this to be run like one.
struct frame {
    void (*resume)(frame*);
    void (*destroy)(frame*);

    std::coroutine_handle<> handle() noexcept {
        return std::coroutine_handle<>::from_address(this);
    }
};

}  // namespace detail
}  // namespace weft
