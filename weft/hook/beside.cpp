#include "weft/hook/beside.hpp"

#include <time.h>

#include <chrono>

#include "weft/hook/calls.hpp"
#include "weft/hook/readiness.hpp"

namespace weft::hook {

void others_beside::run_or_rest() noexcept {
    if (run()) return;
    const kept_errno own;
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
