#include "bench/net/trial.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

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

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    const std::size_t half = of.size() / 2;
    return of.size() % 2 != 0 ? of[half] : (of[half - 1] + of[half]) / 2;
}

double median_ratio(const std::vector<double>& of, const std::vector<double>& to) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i != of.size(); ++i) ratios.push_back(of[i] / to[i]);
    return median(std::move(ratios));
}

void bars::hold(const char* what, double ratio, double most) {
    const bool kept = ratio <= most;
    all_kept &= kept;
    std::printf("%-52s %6.3f   bar %4.2f %s\n", what, ratio, most, kept ? "kept" : "MISSED");
}

}  // namespace bench::net
