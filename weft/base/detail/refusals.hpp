// refusals: what is done about a refused system call whose error cannot be returned to any caller.
//
// A driver that cannot sleep and a wake that cannot be sent have no caller to return the error to.
//
// Design: a call that may succeed later is tried again, after a pause and with a message; any other
// ends the program with one line that names the call and the error. A refusal is therefore neither
// a spin nor silent.
//
//   refusals of_sleep;
//   for (;;) {
//       const int n = ::epoll_wait(set, events, room, of_sleep.are_doubted() ? 0 : -1);
//       if (n >= 0) return of_sleep.none();
//       of_sleep.met("epoll_wait", errno);
//   }
#pragma once

#include "weft/base/clock.hpp"

namespace weft::detail {

// Prints "weft: <call> is refused: <error>; ..." and ends the program with status 2, as the library
// does where the environment asks for something that is missing. Any thread.
[[noreturn]] void end_refused(const char* call, int error) noexcept;

class refusals {
public:
    // The call went well.
    void none() noexcept { in_a_row_ = 0; }
    // It has failed. Returns when it is worth another try: at once after a signal, after a pause
    // where the system is short of something.
    void met(const char* call, int error) noexcept;
    // It was interrupted so often, and nothing else, that these may be no signals. What does not
    // sleep is not interrupted: so the next call is one that does not, and if that is
    // interrupted too, it is refused.
    bool are_doubted() const noexcept { return in_a_row_ >= most_interrupts; }

private:
    static constexpr unsigned most_interrupts = 1000;
    static constexpr unsigned most_doubts = 100;
    static constexpr duration patience = std::chrono::seconds(5);
    static constexpr duration longest_pause = std::chrono::milliseconds(100);

    void pause(const char* call, int error) noexcept;

    unsigned in_a_row_ = 0;
    bool told_ = false;
    duration pause_{};  // the latest; zero where none is of this row
    time_point short_since_{};
};

}  // namespace weft::detail
