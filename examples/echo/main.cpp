// echo: the same echo server in every style of coroutine, on real sockets, under a rude client.
//
// Shows: fibers and tasks with weft's sockets, by epoll and by io_uring; weft::stackless,
// weft::coroutine and weft::shared_stack_group doing the same job without a scheduler
// (session_*.cpp, each a lesson of its own); and that everything that a suspended session owns is
// destroyed with the session.
//
//   echo                       every style in turn, a table, PASS or FAIL
//   echo --style stackful --seconds 30
//   echo --serve task.epoll --port 7777   and in another terminal: nc 127.0.0.1 7777
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <vector>

#include "options.hpp"
#include "process.hpp"
#include "report.hpp"
#include "server.hpp"
#include "trial.hpp"

namespace echo {

namespace {

int serve_until_interrupted(const options& o) {
    const int interrupts = interrupts_fd();
    weft::tcp_listener l = listen(o.port);
    std::printf("%s: listening on 127.0.0.1 port %u, until Ctrl-C\n", o.serve->name,
                l.local_endpoint().port());
    std::fflush(stdout);
    const server_report r = serve(*o.serve, l, interrupts);
    std::printf("%llu sessions, %llu buffers constructed, %llu destroyed\n",
                static_cast<unsigned long long>(r.sessions),
                static_cast<unsigned long long>(r.buffers_constructed),
                static_cast<unsigned long long>(r.buffers_destroyed));
    return r.buffers_constructed == r.buffers_destroyed ? 0 : 1;
}

int run_trials(const options& o) {
    allow_descriptors(o.connections);
    const int interrupts = interrupts_fd();
    listen(o.port).close();  // so that the error of an unavailable port is all that is printed
    print_heading(o.connections, o.seconds);
    std::vector<trial_report> trials;
    for (const style* s : o.styles) {
        if (const char* why = refusal_of(*s)) {
            print_left_out(s->name, why);
            continue;
        }
        trials.push_back(run_trial(*s, o, interrupts));
        print_row(trials.back());
    }
    return print_verdict(trials) ? 0 : 1;
}

int run(int argc, char** argv) {
    const options o = parse_options(argc, argv);
    if (o.help) {
        std::fputs(help_text, stdout);
        return 0;
    }
    return o.serve != nullptr ? serve_until_interrupted(o) : run_trials(o);
}

}  // namespace

}  // namespace echo

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);  // children are reaped here, whatever was inherited
    try {
        return echo::run(argc, argv);
    } catch (const echo::bad_input& e) {
        std::fprintf(stderr, "echo: %s\n", e.what());
        return 2;
    } catch (const echo::interrupted& i) {
        std::signal(i.signal, SIG_DFL);  // ends as the signal would have ended it
        echo::default_interrupts();
        std::raise(i.signal);
        return 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "echo: %s\n", e.what());
        return 1;
    }
}
