// program: a server that a test starts, and that does not outlive it.
//
// Design: the child asks the kernel for a signal at its parent's death, so that a test which fails,
// is killed or times out leaves no server behind; otherwise the destructor ends the server, by its
// id.
//
// When the tests run as root, a server that refuses to run as root runs as `user`, and that user
// owns everything in the directory. What the server prints is in the file "log" of the directory,
// and in the exception which reports that the server did not start.
//
//   program p(f, {.command = {"redis-server", "--port", port.text()}}, [&] { return answers(); });
//   p.start();
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "test/clients/folder.hpp"

namespace weft::testing {

struct program_options {
    std::vector<std::string> command;
    std::string user = {};      // empty: the user that runs the tests
    int stop_signal = SIGTERM;  // ends it in good order
};

class program {
public:
    // `answers`: whether it can be used.
    program(const folder& in, program_options options, std::function<bool()> answers)
        : folder_(in), options_(std::move(options)), answers_(std::move(answers)) {}
    program(const program&) = delete;
    program& operator=(const program&) = delete;
    ~program() { stop(); }

    // Waits until it answers; does nothing if it runs. Throws with its output if it does not
    // answer.
    void start();
    void stop();

    // kill -9: it ends at once, and can be started again.
    void kill();
    // It is there, and does nothing until it is resumed.
    void suspend() { send(SIGSTOP); }
    void resume() { send(SIGCONT); }

private:
    void send(int number);
    bool ended();

    const folder& folder_;
    program_options options_;
    std::function<bool()> answers_;
    ::pid_t id_ = 0;
};

// Runs one to its end; throws with its output if it failed.
void run_to_end(const folder& in, const program_options& options);

}  // namespace weft::testing
