// child: a child process that reports through a pipe and never outlives its parent.
//
// Killed and reaped by its destructor; killed by the kernel when the parent dies, however it dies.
// Reports are trivially copyable structs of at most PIPE_BUF bytes, so each arrives whole.
//
//   child c([](int report_fd) { send_report(report_fd, numbers{...}); return 0; });
//   numbers n; while (c.receive(n)) ...
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

namespace echo {

using steady = std::chrono::steady_clock;

class child {
public:
    // Runs body in a new process, whose exit status is what it returns. Throws bad_input.
    explicit child(const std::function<int(int report_fd)>& body);
    ~child();
    child(const child&) = delete;
    child& operator=(const child&) = delete;

    int report_fd() const noexcept { return report_fd_; }

    // Waits for the next report; false at the end of the stream.
    template <class Report>
    bool receive(Report& out) noexcept {
        static_assert(std::is_trivially_copyable_v<Report> && sizeof(Report) <= 4096);
        return receive_bytes(&out, sizeof out);
    }

    void request_stop() noexcept;  // SIGTERM

    // Reaps the process, or kills it at the deadline first. Empty when the process exited with 0.
    std::string join(steady::time_point deadline);

    std::uint64_t peak_rss_bytes() const noexcept { return peak_rss_bytes_; }  // after join

private:
    bool receive_bytes(void* out, std::size_t size) noexcept;

    pid_t pid_ = -1;
    int report_fd_ = -1;
    std::uint64_t peak_rss_bytes_ = 0;
};

bool send_bytes(int report_fd, const void* data, std::size_t size) noexcept;

template <class Report>
bool send_report(int report_fd, const Report& r) noexcept {
    static_assert(std::is_trivially_copyable_v<Report> && sizeof(Report) <= 4096);
    return send_bytes(report_fd, &r, sizeof r);
}

// SIGINT and SIGTERM as a descriptor that is readable when one has come. Those signals are blocked
// from then on in this process; a child has them blocked too until it asks for the default.
int interrupts_fd();
int take_interrupt(int fd);  // the signal's number
void default_interrupts();

}  // namespace echo
