// exception_state: the C++ runtime's record of exceptions in flight, which belongs to an agent.
//
// The Itanium C++ ABI keeps, per thread, the stack of caught exceptions and the number of uncaught
// ones. A coroutine that suspends inside a catch block, or while a destructor runs during
// unwinding, would leave both to the agent that runs next. Design: they are nearly always zero, so
// a switch tests them (two loads: their address, and bits()) and moves them only if they are not.
// They are reached through the ABI's own accessor; nothing is interposed.
//
// libstdc++ and libc++abi lay the words out alike: the two, and under ARM's EHABI a third. If no
// C++ runtime is linked, the state is always empty.
#pragma once

#include <bit>
#include <cstdint>

namespace weft::detail {

struct exception_state {
    void* caught;
    unsigned uncaught;
#if defined(__arm__)
    void* in_cleanup = nullptr;  // exceptions whose cleanups run; each of them is uncaught
#endif

    // Not zero if the state is not empty, by one load where that can be; two loads would give the
    // same result at twice the cost on every switch:
    //
    //     +0 | caught (8 bytes)        | +8 uncaught (4) |
    //            +2 |      these eight       | +10
    //
    // An address whose upper 48 bits are zero is in the first 64 KiB, where no exception is; and no
    // program has 65 536 exceptions in flight.
    std::uint64_t bits() const noexcept {
        if constexpr (sizeof(void*) == 8 && std::endian::native == std::endian::little) {
            std::uint64_t middle;
            __builtin_memcpy(&middle, reinterpret_cast<const char*>(this) + 2, sizeof middle);
            return middle;
        }
        return reinterpret_cast<std::uintptr_t>(caught) | uncaught;
    }
    // Moves the state out and leaves it empty.
    exception_state take() noexcept {
        const exception_state taken = *this;
        *this = {};
        return taken;
    }
};

// The calling thread's state. The address is the thread's: it must not be kept across a suspension.
exception_state& thread_exception_state() noexcept;

// For a thread that waits and meanwhile runs what is not a part of it: its exceptions are put aside
// until the end of the block.
class exceptions_aside {
public:
    exceptions_aside() noexcept : own_(thread_exception_state().take()) {}
    exceptions_aside(const exceptions_aside&) = delete;
    exceptions_aside& operator=(const exceptions_aside&) = delete;
    ~exceptions_aside() { thread_exception_state() = own_; }

private:
    const exception_state own_;
};

}  // namespace weft::detail
