// differs: whether a program produces the same answers with threads and with fibers, and the
// smallest program that does not.
//
// A difference is run again with times four and ten times as long, and the threads must produce the
// same answers each time: a program that differs between two runs of threads depends on the
// schedule, and shows nothing about hooks. A difference counts when it is the same in each of three
// more runs, with times twenty times as long (search.hpp), so that none is reported because a
// machine is slow.
//
// Differences that are allowed have a list, docs/hooks.md "Allowed differences", and no program
// produces one. By the list's numbers: 1 no fiber is stopped before the end; 2, 4 and 11
// play::obstacle() leaves such steps out; 3 making::tell_moved() says "a part", world::last_look()
// no room of terminals; 5 answers name slots; 6 to 8 and 10 no step does that; 9
// making::takes_nothing(); 12 world::only_waiting; 13 play::is_changed(); 14 play::obstacle().
#pragma once

#include <functional>
#include <string>

#include "test/hook/fuzz/program.hpp"
#include "test/hook/fuzz/sides.hpp"

namespace weft::testing::fuzz {

enum class verdict : unsigned char { same, differs, unstable };

struct finding {
    verdict what = verdict::same;
    std::string name;  // of a difference: the call, and both answers, without what varies
    std::string text;  // both transcripts, to be read
};

// Of the runs that decide.
inline constexpr unsigned slowest = 20;
inline constexpr unsigned looks_that_decide = 3;

// Runs the program in this process: once if `slowness` is given; if it is 0, as often as is needed.
// A difference for which is_known() holds, by its name, is not run again.
finding look_for_difference(const program& p, int planted, unsigned slowness = 0,
                            const std::function<bool(const std::string& name)>& is_known = nullptr);

// The least program of which still_differs() holds, from one of which it does: steps are left out,
// then actors, then choices are made the first of their list.
program shrunk(program p, const std::function<bool(const program&)>& still_differs);

}  // namespace weft::testing::fuzz
