// weft_bench: weft and its peers, measured by the same code in one run.
//
//   weft_bench --benchmark_filter='^switch/'  --benchmark_format=json
//
// Cases are named subject/variant/peer; see bench/program.hpp for how the cases are run.

#include <benchmark/benchmark.h>

#include "bench/program.hpp"
#include "bench/subjects.hpp"
#include "weft/base/platform.hpp"
#include "weft/unwind/fast_unwind/fast_unwind.hpp"

#if __has_include(<boost/version.hpp>)
#include <boost/version.hpp>
#endif

int main(int argc, char** argv) {
    weft::fast_unwind::enable(false);  // its peer switches it on, in its child

    bench::add_create();
    bench::add_switch();
    bench::add_finish();
    bench::add_kill();
    bench::add_skynet();
    bench::add_memory();
    bench::add_fibers();
    bench::add_await();
    bench::add_poll_future();
    bench::add_timers();
    bench::add_parallel();
    bench::add_future();
    bench::add_value();
    bench::add_manager();

    benchmark::AddCustomContext("switch", WEFT_BACKEND_UCONTEXT ? "ucontext" : "asm");
#if defined(BOOST_LIB_VERSION)
    benchmark::AddCustomContext("boost", BOOST_LIB_VERSION);
#endif
    return bench::run_program(argc, argv);
}
