#include "process.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>

#include "options.hpp"

namespace echo {

namespace {

[[noreturn]] void run_child(const std::function<int(int)>& body, int report_fd, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before the line above
    int status = 1;
    try {
        status = body(report_fd);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "echo: %s\n", e.what());
    }
    std::exit(status);
}

sigset_t interrupts() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

}  // namespace

child::child(const std::function<int(int report_fd)>& body) {
    int ends[2];
    if (::pipe(ends) < 0) throw bad_input(std::string("no pipe: ") + std::strerror(errno));
    std::fflush(nullptr);  // or the child would print it again
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
        ::close(ends[0]);
        run_child(body, ends[1], parent);
    }
    const int error = errno;
    ::close(ends[1]);
    report_fd_ = ends[0];
    if (pid_ < 0) {
        ::close(report_fd_);
        throw bad_input(std::string("cannot start a process: ") + std::strerror(error));
    }
}

child::~child() {
    if (pid_ > 0) join(steady::now());
    ::close(report_fd_);
}

void child::request_stop() noexcept {
    if (pid_ > 0) ::kill(pid_, SIGTERM);
}

std::string child::join(steady::time_point deadline) {
    int status = 0;
    rusage usage{};
    bool late = false;
    while (::wait4(pid_, &status, late ? 0 : WNOHANG, &usage) == 0) {
        late = steady::now() >= deadline;
        if (late) ::kill(pid_, SIGKILL);
        ::usleep(1000);
    }
    pid_ = -1;
    peak_rss_bytes_ = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    if (late) return "did not end in time";
    if (WIFSIGNALED(status)) return std::string("died: ") + ::strsignal(WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) return "exit status " + std::to_string(WEXITSTATUS(status));
    return {};
}

bool child::receive_bytes(void* out, std::size_t size) noexcept {
    ssize_t n;
    do n = ::read(report_fd_, out, size);
    while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(size);
}

bool send_bytes(int report_fd, const void* data, std::size_t size) noexcept {
    return ::write(report_fd, data, size) == static_cast<ssize_t>(size);
}

int interrupts_fd() {
    const sigset_t set = interrupts();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    return ::signalfd(-1, &set, SFD_CLOEXEC);
}

int take_interrupt(int fd) {
    signalfd_siginfo info{};
    return ::read(fd, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void default_interrupts() {
    const sigset_t set = interrupts();
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace echo
