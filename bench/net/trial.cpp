#include "bench/net/trial.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "bench/net/server_process.hpp"
#include "bench/net/sockets.hpp"

namespace bench::net {

void give_up(const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
    std::exit(2);
}

unsigned rounds_argument(int argc, char** argv, unsigned usual) {
    if (argc == 1) return usual;
    unsigned rounds = 0;
    if (argc == 2) {
        const char* const end = argv[1] + std::strlen(argv[1]);
        const auto [stop, error] = std::from_chars(argv[1], end, rounds);
        if (error == std::errc{} && stop == end && rounds >= 1 && rounds <= 1000) return rounds;
    }
    std::fprintf(stderr, "usage: %s [ROUNDS], from 1 to 1000; %u if nothing is said\n",
                 program_invocation_short_name, usual);
    std::exit(2);
}

void pin_to(unsigned which) {
    static const std::vector<std::size_t> cores = [] {
        cpu_set_t all;
        if (sched_getaffinity(0, sizeof all, &all) != 0) die("sched_getaffinity");
        std::vector<std::size_t> found;
        for (std::size_t i = 0; i != CPU_SETSIZE; ++i)
            if (CPU_ISSET(i, &all)) found.push_back(i);
        return found;
    }();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cores[which % cores.size()], &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) die("sched_setaffinity");
}

server_child::server_child(const std::function<void(int tell)>& serve) {
    int tell[2];
    if (::pipe(tell) != 0) die("pipe");
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) die("fork");
    if (pid_ == 0) {
        ::close(tell[0]);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() == parent) serve(tell[1]);
        ::_exit(2);
    }
    ::close(tell[1]);
    const bool reported = ::read(tell[0], &port_, sizeof port_) == sizeof port_;
    ::close(tell[0]);
    if (reported) return;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    if (WIFEXITED(status)) std::exit(2);  // the child has printed why
    give_up("a server has not begun");
}

server_child::~server_child() {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

double server_child::cpu_us() const {
    usage u;
    std::string why_not;
    if (!look_at(pid_, u, why_not)) give_up(why_not);
    return static_cast<double>(u.cpu_ns) * 1e-3;
}

void tell_port(int tell, std::uint16_t port) {
    if (::write(tell, &port, sizeof port) != sizeof port) die("write");
    ::close(tell);
}

namespace {

// A fraction of the way through what is in order, between two neighbours where it falls there.
double quantile(const std::vector<double>& in_order, double fraction) {
    const double at = fraction * static_cast<double>(in_order.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, in_order.size() - 1);
    return std::lerp(in_order[below], in_order[above], at - static_cast<double>(below));
}

}  // namespace

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return quantile(of, 0.5);
}

void bars::hold(const std::string& what, const std::vector<double>& of,
                const std::vector<double>& to, double most) {
    constexpr std::size_t rounds_that_decide = 12;
    std::vector<double> ratios;
    for (std::size_t i = 0; i != of.size(); ++i) ratios.push_back(of[i] / to[i]);
    std::sort(ratios.begin(), ratios.end());
    const double low = quantile(ratios, 0.25);
    const double high = quantile(ratios, 0.75);
    const bool decided = ratios.size() >= rounds_that_decide;
    const bool missed = decided && low > most;
    any_missed |= missed;
    std::printf("%-60s %5.3f (%5.3f to %5.3f)  bar %4.2f %s\n", what.c_str(), quantile(ratios, 0.5),
                low, high, most,
                missed                    ? "MISSED"
                : decided && high <= most ? "kept"
                                          : "not decided");
}

}  // namespace bench::net
