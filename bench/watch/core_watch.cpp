// weft_core_watch: whether another tenant of the machine computes on the core that is measured.
//
// Design: two hardware threads share one core, and a virtual machine may have only one of them.
// While the other computes, a loop that is bound by how many instructions the core executes at once
// takes up to twice as long; a chain of multiplications, each of which needs the one before, keeps
// its pace. Neither has anything to do with memory. Every few milliseconds both are timed, for some
// microseconds, and a line has the time (seconds of the monotonic clock) and the ratio of their
// times. The smallest ratio of a run is a core of one's own.
//
//      ratio   |      ____        __
//              |_____|    |______|  |____     <- alone
//
// Limits: nothing is seen of a tenant that only waits for memory, or that uses the shared cache.
//
//   taskset -c 1 weft_core_watch     # until it is terminated: 5123.004817 0.71

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <thread>

namespace {

using steady = std::chrono::steady_clock;

constexpr auto period = std::chrono::milliseconds(5);
constexpr int tries = 4;  // of which the fastest counts: an interrupt falls into one of them
constexpr int wide_rounds = 10000;
constexpr int chain_rounds = 5000;

void run_wide() {
    for (int i = 0; i < wide_rounds; ++i)
        asm volatile("nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop" ::);
}

// The empty statements keep the compiler from computing the results beforehand.
void run_chain() {
    unsigned long x = 3;
    unsigned long factor = 5;
    asm volatile("" : "+r"(factor));
    for (int i = 0; i < chain_rounds; ++i) {
        x *= factor;
        asm volatile("" : "+r"(x));
    }
}

template <class F>
double fastest(F run) {
    double best = std::numeric_limits<double>::max();
    for (int i = 0; i < tries; ++i) {
        const auto began = steady::now();
        run();
        best = std::min(best, std::chrono::duration<double>(steady::now() - began).count());
    }
    return best;
}

}  // namespace

int main() {
    // To be there in time beside what is measured. Where it is refused, lines come later.
    setpriority(PRIO_PROCESS, 0, -20);
    for (;;) {
        const double ratio = fastest(run_wide) / fastest(run_chain);
        const std::chrono::duration<double> now = steady::now().time_since_epoch();
        if (std::printf("%.6f %.3f\n", now.count(), ratio) < 0 || std::fflush(stdout) != 0)
            return 0;
        std::this_thread::sleep_for(period);
    }
}
