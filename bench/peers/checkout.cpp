// weft_bench_<library>: the peers of one checkout, measured by the same code as the peers of
// weft_bench, in a program of their own: some libraries replace system calls, and a library that
// does not build is missing alone.

#include <benchmark/benchmark.h>

#include "bench/program.hpp"
#include "bench/subjects.hpp"

namespace bench {

// A subject that the program is built without is null.
[[gnu::weak]] void add_create();
[[gnu::weak]] void add_switch();
[[gnu::weak]] void add_finish();
[[gnu::weak]] void add_kill();
[[gnu::weak]] void add_skynet();
[[gnu::weak]] void add_memory();
[[gnu::weak]] void add_fibers();
[[gnu::weak]] void add_parallel();
[[gnu::weak]] void add_value();
[[gnu::weak]] void add_future();

}  // namespace bench

int main(int argc, char** argv) {
    for (void (*add)() :
         {&bench::add_create, &bench::add_switch, &bench::add_finish, &bench::add_kill,
          &bench::add_skynet, &bench::add_memory, &bench::add_fibers, &bench::add_parallel,
          &bench::add_value, &bench::add_future}) {
        if (add != nullptr) add();
    }
    benchmark::AddCustomContext("checkout", WEFT_BENCH_VERSION);
    return bench::run_program(argc, argv);
}
