// allowed: what a program may be told otherwise in fibers, and why. It is the list of
// docs/hooks.md, "Allowed differences", by its numbers; those of it that no program of the fuzzer
// can see (a stop, a close of what is waited for) are not here: the generator makes no such
// program.
#pragma once

#include <string>

#include "test/hook/fuzz/program.hpp"

namespace weft::testing::fuzz {

// Whether the answers of one step may differ so.
inline bool is_allowed(const step&, const std::string& /*of a thread*/,
                       const std::string& /*of a fiber*/) {
    return false;
}

}  // namespace weft::testing::fuzz
