// exception_state: the C++ runtime's account of exceptions in flight, which belongs to an agent.
//
// The Itanium C++ ABI keeps, per thread, the stack of caught exceptions and the number of uncaught
// ones. A coroutine that suspends inside a catch block, or while a destructor runs during
// unwinding, would leave both to the agent that runs next. The one idea: they are nearly always
// zero, so a switch tests them (two loads) and only moves them when they are not. They are reached
// through the ABI's own accessor; nothing is interposed.
//
// libstdc++ and libc++abi lay the two words out alike. Where no C++ runtime is linked the state is
// always empty.
#pragma once

#include <bit>
#include <cstdint>

namespace weft::detail {

struct exception_state {
    void* caught;
    unsigned uncaught;

    // Not zero if the state is not empty, by one load; two loads would give the same answer at
    // twice the price on every switch:
    //
    //     +0 | caught (8 bytes)        | +8 uncaught (4) |
    //            +2 |      these eight       | +10
    //
    // An address whose upper 48 bits are zero lies in the first 64 KiB, where no exception does;
    // and no program has 65 536 exceptions in flight.
    std::uint64_t bits() const noexcept {
        static_assert(sizeof(void*) == 8 && std::endian::native == std::endian::little);
        std::uint64_t middle;
        __builtin_memcpy(&middle, reinterpret_cast<const char*>(this) + 2, sizeof middle);
        return middle;
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
