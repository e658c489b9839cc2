#include "weft/base/detail/refusals.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "weft/base/detail/line.hpp"
#include "weft/base/detail/spin_wait.hpp"

namespace weft::detail {

void end_refused(const char* call, int error) noexcept {
    line l;
    l.text("weft: ").text(call).text(" is refused: ").text(std::strerror(error));
    l.text("; the program cannot go on without it\n").write(2);
    std::_Exit(2);
}

void refusals::met(const char* call, int error) noexcept {
    if (in_a_row_++ == 0) pause_ = {};
    switch (error) {
        case EINTR:
        case EBUSY:  // io_uring: there are results to be taken first
            if (in_a_row_ < most_interrupts + most_doubts) return;
            break;
        case EAGAIN:
        case ENOMEM:
        case ENOBUFS:
        case EMFILE:
        case ENFILE:
            return pause(call, error);
    }
    end_refused(call, error);
}

void refusals::pause(const char* call, int error) noexcept {
    const time_point now = steady_now();
    if (pause_ == duration::zero()) short_since_ = now;
    if (now - short_since_ > patience) end_refused(call, error);
    if (!std::exchange(told_, true)) {
        line l;
        l.text("weft: ").text(call).text(" is refused: ").text(std::strerror(error));
        l.text("; it is tried again\n").write(2);
    }
    pause_ = std::clamp(2 * pause_, duration(std::chrono::milliseconds(1)), longest_pause);
    nap(pause_);
}

}  // namespace weft::detail
