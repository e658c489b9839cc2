#include "weft/hook/detail/beside.hpp"

#include <time.h>

#include <chrono>

#include "weft/base/detail/line.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/readiness.hpp"

namespace weft::hook {

void others_beside::tell_of_waiting(time_point present) noexcept {
    constexpr auto a_while = std::chrono::seconds(1);
    if (tells_at_ == time_point::min()) tells_at_ = of_.ending ? after(present, a_while) : never;
    if (present < tells_at_) return;
    tells_at_ = never;
    weft::detail::line{}
        .text("weft: hook: ")
        .agent(of_.info())
        .text(" is killed and waits for ")
        .text(what_)
        .text(" with its thread")
        .newline()
        .write(2);
}

void others_beside::run_or_rest() noexcept {
    if (run()) return;
    const kept_errno own;
    tell_of_waiting(steady_now());
    const timespec instant = {0, 50'000};
    real::nanosleep(&instant, nullptr);
}

void ask_again_after(const fiber_core& f, others_beside& others, duration pause) {
    if (f.ending)
        others.run_or_rest();
    else if (pause == duration::zero())
        let_others_run();
    else
        wait_out(after(now(), pause));
}

}  // namespace weft::hook
