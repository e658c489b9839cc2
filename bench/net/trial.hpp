// trial: the common part of the programs that compare servers: a server as a child of the program,
// which is the load, and the figures of many rounds.
//
// The servers take turns, round by round, so that other work on the machine is spread over all. A
// ratio is taken within each round, and the median of the rounds and their quartiles are printed. A
// bar that lies between the quartiles is not decided, nor is one that fewer than twelve rounds
// speak of.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bench::net {

// Prints `<program>: <what>` and exits with status 2.
[[noreturn]] void give_up(const std::string& what);

// The number of rounds, from the program's only argument, or `usual` without one. Anything else is
// one line and exit status 2.
unsigned rounds_argument(int argc, char** argv, unsigned usual);

// Pins this thread, and the threads that it starts: to the first, or second, of the cores that the
// program had at the first call.
void pin_to(unsigned which);

// A server as a process, which is killed at the end of this object or of the program.
class server_child {
public:
    // `serve` runs in the child: it writes its port, a std::uint16_t, to the descriptor `tell` as
    // soon as the port can be reached, and serves until the process is killed.
    explicit server_child(const std::function<void(int tell)>& serve);
    server_child(const server_child&) = delete;
    ~server_child();

    pid_t pid() const noexcept { return pid_; }
    std::uint16_t port() const noexcept { return port_; }
    double cpu_us() const;  // of all its threads, until now

private:
    pid_t pid_;
    std::uint16_t port_ = 0;
};

// Called by a server: writes its port.
void tell_port(int tell, std::uint16_t port);

double median(std::vector<double> of);

// Prints a line for each bar.
struct bars {
    bool any_missed = false;
    // The ratios of `of` to `to`, each within one round, are at most `most`.
    void hold(const std::string& what, const std::vector<double>& of, const std::vector<double>& to,
              double most);
};

}  // namespace bench::net
