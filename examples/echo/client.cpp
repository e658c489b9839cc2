#include "client.hpp"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "connection.hpp"

namespace echo {

namespace {

using namespace std::chrono_literals;

steady::duration duration_of(double seconds) {
    return std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(seconds));
}

class client {
public:
    client(const client_settings& settings, std::function<void(const client_report&)> progress);
    ~client() { ::close(load_.epoll_fd); }
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    client_report run();

private:
    void open_all();
    void handle_events(int wait_ms);
    void tick();
    void wake_rested();
    void finish();
    void drain(bool (connection::*over)() const noexcept);
    void measure();

    const steady::duration duration_, drain_;
    const std::function<void(const client_report&)> progress_;
    load load_;
    std::vector<std::unique_ptr<connection>> connections_;
    steady::time_point next_tick_ = steady::now(), next_progress_ = next_tick_;
};

client::client(const client_settings& settings, std::function<void(const client_report&)> progress)
    : duration_(duration_of(settings.seconds)),
      drain_(duration_of(settings.drain_seconds)),
      progress_(std::move(progress)) {
    load_.epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
    load_.server.sin_family = AF_INET;
    load_.server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    load_.server.sin_port = htons(settings.port);
    for (auto* scratch : {&load_.sent, &load_.received, &load_.expected}) {
        scratch->resize(chunk_bytes);
    }
    for (unsigned i = 0; i < settings.connections; ++i) {
        connections_.push_back(std::make_unique<connection>(load_, mix(settings.seed) + i));
    }
}

client_report client::run() {
    open_all();
    load_.measured_from = steady::now();
    while (steady::now() < load_.measured_from + duration_) {
        handle_events(5);
        tick();
    }
    measure();
    finish();
    return load_.report;
}

// In batches, so that the server keeps up and its backlog does not overflow.
void client::open_all() {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
        connections_[i]->open();
        if (i % 64 == 63) handle_events(0);
    }
}

void client::handle_events(int wait_ms) {
    epoll_event events[128];
    const int count = ::epoll_wait(load_.epoll_fd, events, 128, wait_ms);
    for (int i = 0; i < count; ++i) {
        static_cast<connection*>(events[i].data.ptr)->on_event(events[i].events);
    }
}

void client::tick() {
    const auto now = steady::now();
    if (now < next_tick_) return;
    next_tick_ = now + 5ms;
    wake_rested();
    if (now < next_progress_) return;
    next_progress_ = now + 250ms;
    measure();
    progress_(load_.report);
}

void client::wake_rested() {
    std::vector<connection*> rested;
    rested.swap(load_.resting);
    for (connection* c : rested) c->wake();
}

// A third of the connections hang up in any state, a third must get their message back, and the
// others start anew and continue until the server ends them.
void client::finish() {
    load_.ending = true;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
        connections_[i]->end(static_cast<connection::farewell>((i + 1) % 3));
    }
    drain(&connection::is_settled);
    load_.report.complete = 1;
    progress_(load_.report);
    drain(&connection::is_closed);
}

void client::drain(bool (connection::*over)() const noexcept) {
    const auto deadline = steady::now() + drain_;
    const auto awaited = [over](const auto& c) { return !(*c.*over)(); };
    while (steady::now() < deadline && std::ranges::any_of(connections_, awaited)) {
        handle_events(5);
        wake_rested();
    }
    load_.report.stalled +=
        static_cast<std::uint64_t>(std::ranges::count_if(connections_, awaited));
}

void client::measure() {
    const auto elapsed = std::min<steady::duration>(steady::now() - load_.measured_from, duration_);
    load_.report.measured_ns =
        static_cast<std::uint64_t>(std::chrono::nanoseconds(elapsed).count());
    load_.report.p50_ns = load_.round_trip_ns.percentile(0.50);
    load_.report.p99_ns = load_.round_trip_ns.percentile(0.99);
}

}  // namespace

client_report run_client(const client_settings& settings,
                         const std::function<void(const client_report&)>& progress) {
    return client(settings, progress).run();
}

}  // namespace echo
