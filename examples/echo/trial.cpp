#include "trial.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "client.hpp"
#include "process.hpp"
#include "server.hpp"

namespace echo {

namespace {

using namespace std::chrono_literals;

// One line that is written over on a terminal; elsewhere a line now and then.
class progress_line {
public:
    explicit progress_line(const style& s) : style_(s), next_(steady::now() + pace()) {}
    ~progress_line() {
        if (terminal_) std::fprintf(stderr, "\r\033[K");
    }
    progress_line(const progress_line&) = delete;
    progress_line& operator=(const progress_line&) = delete;

    void show(const client_report& r, double seconds) {
        if (steady::now() < next_) return;
        next_ += pace();
        std::fprintf(stderr, "%s%-14s %.0f of %g s, %llu round trips, %llu mismatches%s",
                     terminal_ ? "\r\033[K" : "", style_.name,
                     static_cast<double>(r.measured_ns) / 1e9, seconds,
                     static_cast<unsigned long long>(r.round_trips),
                     static_cast<unsigned long long>(r.mismatches), terminal_ ? "" : "\n");
    }

private:
    steady::duration pace() const { return terminal_ ? 250ms : 10'000ms; }

    const style& style_;
    const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
    steady::time_point next_;
};

// Waits for a report of `c`; false at its end, at the deadline, or when `other` ends or reports
// first. Throws when interrupted.
template <class Report>
bool await_report(child& c, Report& out, int interrupts_fd, steady::time_point deadline,
                  const child* other = nullptr) {
    pollfd fds[3] = {{c.report_fd(), POLLIN, 0},
                     {interrupts_fd, POLLIN, 0},
                     {other != nullptr ? other->report_fd() : -1, POLLIN, 0}};
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady::now());
        if (left <= 0ms) return false;
        ::poll(fds, 3, static_cast<int>(std::min<long>(left.count(), 60'000)));
        if (fds[1].revents != 0) throw interrupted{take_interrupt(interrupts_fd)};
        if (fds[2].revents != 0) return false;
        if (fds[0].revents != 0) return c.receive(out);
    }
}

int client_process(const client_settings& settings, int report_fd) {
    default_interrupts();
    const auto report = [report_fd](const client_report& r) { send_report(report_fd, r); };
    report(run_client(settings, report));
    return 0;
}

}  // namespace

trial_report run_trial(const style& s, const options& o, int interrupts_fd) {
    trial_report trial;
    trial.style = s.name;
    const auto note = [&trial](const char* who, const std::string& what) {
        if (!what.empty()) trial.failures.push_back(std::string(who) + " process " + what);
    };

    weft::tcp_listener l = listen(o.port);
    const client_settings settings{l.local_endpoint().port(), o.connections, o.seconds, o.seed};
    child server([&](int report_fd) {
        return send_report(report_fd, serve(s, l, echo::interrupts_fd())) ? 0 : 1;
    });
    child client([&](int report_fd) {
        l.close();
        return client_process(settings, report_fd);
    });
    l.close();

    const auto opening_and_closing = 10s + o.connections * 1ms;
    const std::chrono::duration<double> measured(settings.seconds + settings.drain_seconds);
    const auto deadline =
        steady::now() + std::chrono::ceil<steady::duration>(measured) + opening_and_closing;
    {
        progress_line line(s);
        while (trial.client.complete == 0 &&
               await_report(client, trial.client, interrupts_fd, deadline, &server)) {
            line.show(trial.client, o.seconds);
        }
    }
    server.request_stop();
    const auto stop_deadline = steady::now() + opening_and_closing;
    const bool reported = await_report(server, trial.server, interrupts_fd, stop_deadline);
    note("server", server.join(stop_deadline));
    if (!reported && trial.failures.empty()) note("server", "made no report");
    if (trial.failures.empty()) {
        await_report(client, trial.client, interrupts_fd, stop_deadline);
        note("client", client.join(stop_deadline));
    }
    trial.peak_rss_bytes = server.peak_rss_bytes();
    return trial;
}

}  // namespace echo
