// run_program: runs the cases that a program of the comparison has added.
//
// run_program takes every flag of Google Benchmark. By default a case is repeated five times, and
// the repetitions of all cases are interleaved at random, so that a slow minute of the machine is
// spread over all cases. The exit status is 1 if a checksum was wrong or a peer died, 2 for an
// unknown flag.
//
//   int main(int argc, char** argv) {
//       bench::add_switch();
//       return bench::run_program(argc, argv);
//   }
#pragma once

namespace bench {

int run_program(int argc, char** argv);

}  // namespace bench
