// transfer: passes the thread from one task to another without the stack growing.
//
// A task that awaits another task transfers the thread to it, and resumes when the other task has
// ended. Clang always makes the transfer a jump, GCC only where it makes tail calls (-O2, -O3, -Os,
// no sanitizer). Elsewhere the transfer is a call, and a loop of a million awaits is a million
// calls deep. Design: a task whose body was compiled without tail calls returns to a trampoline, a
// loop below the task on the stack, and leaves the next handle there.
//
//   with tail calls    parent --jump--> child --jump--> parent
//   without            trampoline: resume parent, which returns and leaves: next = child
//                                  resume child,  which returns and leaves: next = parent
//                                  ... until no handle is left
//
// The choice is a property of the body, and is made where the body is compiled: all code that
// decides is inlined into the body. A word in the promise records the choice, so that bodies of
// both kinds have the same layout and may await each other. A task that is resumed by an event,
// with no trampoline below, makes a trampoline at its first transfer.
//
// Model: none, is_below() relies on values that its own thread wrote, or that came with the task.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>

#include "weft/base/platform.hpp"

namespace weft::detail {

// The first base of the promises of weft's tasks.
//
// Invariants:
// I1  a task transfers directly if its body makes tail calls and no trampoline has resumed the task
// I2  transfer_base begins at the same distance from the frame's address in every promise, and the
//     outcome of the task begins right behind transfer_base
class transfer_base {
public:
    // word:  | trampoline that resumed it last | no_tail_calls | foreign | error | value |
    //         63                              4               3         2       1       0
    static constexpr std::uintptr_t value = 1;    // holds a value that has a destructor
    static constexpr std::uintptr_t error = 2;    // ended by an exception, which it holds
    static constexpr std::uintptr_t foreign = 4;  // the awaiter is not one of weft's tasks
    static constexpr std::uintptr_t no_tail_calls = 8;
    static constexpr std::uintptr_t bits_mask = 15;

    std::uintptr_t word = 0;

    // Resumed when this task has ended. Null: the task has not begun. std::noop_coroutine(): the
    // task was started by start() and is not awaited yet.
    std::coroutine_handle<> awaiter;

    bool is_begun() const noexcept { return awaiter != nullptr; }
    bool is_awaited() const noexcept { return is_begun() && awaiter != std::noop_coroutine(); }
    bool goes_straight() const noexcept { return word < no_tail_calls; }  // I1
};

// The slow path of a transfer from the running task `from`, or from another coroutine or function
// (null), to `to`. Leaves `to` at the trampoline below. Without a trampoline below, runs `to` and
// all that follows from it in this call, or transfers directly after all. Returns the result for
// await_suspend: the handle to be resumed.
std::coroutine_handle<> transfer_slowly(transfer_base* from, std::coroutine_handle<> to,
                                        bool to_is_foreign);

// Transfers from the running task to `to`; returns the result for await_suspend.
WEFT_ALWAYS_INLINE std::coroutine_handle<> transfer_to(transfer_base& from,
                                                       std::coroutine_handle<> to,
                                                       bool to_is_foreign) {
    if (__builtin_expect(from.goes_straight(), 1)) return to;
    return transfer_slowly(&from, to, to_is_foreign);
}

// Transfers to the awaiter, from a task that has ended or a generator that has yielded.
WEFT_ALWAYS_INLINE std::coroutine_handle<> resume_awaiter(transfer_base& from) {
    return transfer_to(from, from.awaiter, (from.word & transfer_base::foreign) != 0);
}

// The exception that a task ended with, or null.
std::exception_ptr error_of(transfer_base& of) noexcept;

// Destroys the error of a task that has ended with an error and is about to be destroyed.
void drop_error(transfer_base& of) noexcept;

// The promise of any task, whatever the type of its result.
inline transfer_base& promise_of(std::coroutine_handle<> task) noexcept {  // I2
    return std::coroutine_handle<transfer_base>::from_address(task.address()).promise();
}

// Called by the owner of a task: destroys the task's error, if any, and then the frame. The call
// for the error is not in the promise's destructor, where each turn of each task would save a
// register for that call.
WEFT_ALWAYS_INLINE void destroy_task(std::coroutine_handle<> task) noexcept {
    transfer_base& p = promise_of(task);
    if (__builtin_expect((p.word & transfer_base::error) != 0, 0)) drop_error(p);
    task.destroy();
}

// An example finds out whether GCC makes tail calls, once in each translation unit (no macro
// distinguishes -O1 from -O2). Until the example has run, the answer is no. The names have internal
// linkage on purpose: each is about its own translation unit.
#if WEFT_GCC && !WEFT_ASAN && !WEFT_TSAN
[[maybe_unused]] static std::uintptr_t tail_call_bits = transfer_base::no_tail_calls;
static void* tail_caller_returns_to;

__attribute__((noipa)) static void* tail_callee() { return __builtin_return_address(0); }
__attribute__((noipa)) static void* tail_caller() {
    tail_caller_returns_to = __builtin_return_address(0);
    return tail_callee();
}
__attribute__((constructor)) static void ask_for_tail_calls() {
    if (tail_caller() == tail_caller_returns_to) tail_call_bits = 0;
}
#else
[[maybe_unused]] static constexpr std::uintptr_t tail_call_bits =
    WEFT_CLANG ? 0 : +transfer_base::no_tail_calls;
#endif

}  // namespace weft::detail
