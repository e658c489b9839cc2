// isolated: runs work in a child process, so that a crash or a hang of it is an answer like others.
//
// Limits: the caller has one thread, and has started none of weft's.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace weft::testing::fuzz {

struct isolated_outcome {
    enum what : unsigned char { ended, crashed, hung } how = ended;
    int signal = 0;    // of a crash
    std::string text;  // what the work returned
};

isolated_outcome isolated(const std::function<std::string()>& work,
                          std::chrono::milliseconds limit);

// In a child that has just been forked: hooks, handlers, and no life beyond its parent's.
void begin_child();

// Ends the child with all that it has started. Returns its status.
int end_child(int pid);

}  // namespace weft::testing::fuzz
