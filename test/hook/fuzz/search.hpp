// search: runs many programs, in processes that each run some hundred, one after the other. A
// program that differs, crashes or hangs is run again alone, reduced, and reported once for each
// kind. It is reported if each of three more runs gives the same result (a crash: one of them);
// otherwise it depends on the schedule, and a line names its seed.
//
//      this process --- seeds ---> workers: "begins N" "differs N" ...     a worker that dies or
//          |                                                               is silent ends with its
//          +--- program N, smaller and smaller, each in a child of its own ---> text        N
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/hook/fuzz/program.hpp"

namespace weft::testing::fuzz {

struct search_options {
    std::uint64_t seed = 1;  // of the first program; the next is seed + 1
    std::uint64_t programs = 1000;
    double seconds = 0;  // 0: until all are done
    unsigned jobs = 16;  // most of what a program does is to wait
    unsigned most = 20;  // differences that are reported
    int planted = -1;
    bool tells = true;                    // differences, and every ten seconds how far it is
    std::vector<std::string> known = {};  // patterns of kinds that are reported, and not counted
};

struct search_result {
    std::uint64_t programs = 0;
    std::uint64_t unstable = 0;  // depend on the schedule
    unsigned differences = 0;    // kinds of them
    unsigned known = 0;          // kinds that are known
    program first;               // the first of them, made small
};

search_result search(const search_options& o);

// Runs one program in the same way. Reports it, and whether it differs.
bool replay(const program& p, int planted);

// The difference of one program, run alone in a child; empty where there is none.
struct told {
    std::string name;
    std::string text;
};
told look_alone(const program& p, int planted, unsigned slowness = 0);
// The same with the runs that decide; empty where they do not say the same.
told look_surely(const program& p, int planted);

}  // namespace weft::testing::fuzz
