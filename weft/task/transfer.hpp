// transfer: how one task goes over to another without the stack growing.
//
// A task that awaits another one hands the thread over to it, and gets it back when that one has
// ended. Clang always makes this a jump, GCC only where it makes tail calls (-O2, -O3, -Os, no
// sanitizer); elsewhere it is a call, and a loop of a million awaits is a million calls deep. The
// one idea here: a task whose body was compiled without tail calls returns to a trampoline, a loop
// below it on the stack, and leaves there who comes next.
//
//   with tail calls    parent --jump--> child --jump--> parent
//   without            trampoline: resume parent, which returns and leaves: next = child
//                                  resume child,  which returns and leaves: next = parent
//                                  ... until nobody is left
//
// Which of the two belongs to a body, so it is decided where the body is compiled: all that decides
// is inlined into it. A word in the promise tells, so that bodies of both kinds look alike and may
// await each other. Who is resumed by an event, with no trampoline below, makes one at his first
// transfer.
//
// Model: none, a trampoline is believed by what its own thread wrote, or was handed with the task.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>

#include "weft/base/platform.hpp"

namespace weft::detail {

// The first member of the promises of weft's tasks.
//
// Invariants:
// I1  a task goes over straight if its body makes tail calls and no trampoline has resumed it
// I2  it begins at the same distance from the frame's address in every promise, and what the
//     task has ended with begins right behind it
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

    // Goes on when this one has ended. Null: the task has not begun. The handle that resumes
    // nobody: it was begun by hand.
    std::coroutine_handle<> awaiter;

    bool begun() const noexcept { return awaiter != nullptr; }
    bool awaited() const noexcept { return begun() && awaiter != std::noop_coroutine(); }
    bool goes_straight() const noexcept { return word < no_tail_calls; }  // I1
};

// The long way from the running task `from`, or from another coroutine or function (null), to `to`:
// leaves it at the trampoline below, or where there is none, runs it here, and all that follows
// from it, or goes straight after all. The result is that of await_suspend: what is to be resumed.
std::coroutine_handle<> hand_over_slowly(transfer_base* from, std::coroutine_handle<> to,
                                         bool to_is_foreign);

// From the running task to `to`, as the result of await_suspend.
WEFT_ALWAYS_INLINE std::coroutine_handle<> hand_over(transfer_base& from,
                                                     std::coroutine_handle<> to,
                                                     bool to_is_foreign) {
    if (__builtin_expect(from.goes_straight(), 1)) return to;
    return hand_over_slowly(&from, to, to_is_foreign);
}

// From a task that has ended to its awaiter.
WEFT_ALWAYS_INLINE std::coroutine_handle<> hand_back(transfer_base& from) {
    return hand_over(from, from.awaiter, (from.word & transfer_base::foreign) != 0);
}

// The exception that a task ended with, or null.
std::exception_ptr error_of(transfer_base& of) noexcept;

// Of a task that has ended with an error, and is about to be destroyed.
void drop_error(transfer_base& of) noexcept;

// Of any task, whatever its result is.
inline transfer_base& promise_of(std::coroutine_handle<> task) noexcept {  // I2
    return std::coroutine_handle<transfer_base>::from_address(task.address()).promise();
}

// By who owns a task: its frame goes, and before that the error that it ended with, if that was
// one. In the promise's destructor the call that this takes would make each turn of each task save
// a register for it.
WEFT_ALWAYS_INLINE void destroy_task(std::coroutine_handle<> task) noexcept {
    transfer_base& p = promise_of(task);
    if (__builtin_expect((p.word & transfer_base::error) != 0, 0)) drop_error(p);
    task.destroy();
}

// Whether GCC makes tail calls is asked by example, once in each translation unit (no macro tells
// -O1 from -O2); before it has answered, the answer is the careful one. The names are meant to have
// internal linkage: they speak of this translation unit.
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
