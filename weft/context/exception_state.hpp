// exception_state: the C++ runtime's account of exceptions in flight, which belongs to a party.
//
// The Itanium C++ ABI keeps, per thread, the stack of caught exceptions and the number of uncaught
// ones. A coroutine that suspends inside a catch block, or while a destructor runs during unwinding,
// would leave both to whoever runs next. The one idea: they are nearly always zero, so a switch
// tests them (two loads) and only moves them when they are not. They are reached through the ABI's
// own accessor; nothing is interposed.
//
// libstdc++ and libc++abi lay the two words out alike. Where no C++ runtime is linked the state is
// always empty.
#pragma once

namespace weft::detail {

struct exception_state {
    void* caught = nullptr;
    unsigned uncaught = 0;

    bool any() const noexcept {
        return (reinterpret_cast<unsigned long>(caught) | uncaught) != 0;
    }
    // Moves the state out, leaving none.
    exception_state take() noexcept {
        const exception_state taken = *this;
        *this = {};
        return taken;
    }
};

// The calling thread's own. The address is the thread's: not to be kept across a suspension.
exception_state& thread_exception_state() noexcept;

}  // namespace weft::detail
