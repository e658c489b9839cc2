// weft_hook_bench: the cost of the hooks of weft::hook, in a program that links them; no other
// figure of the comparison is to be measured in such a program.
//
//   hooked_read/ready/weft    read() of a byte that is there, in a fiber: a pipe, a socket
//   hooked_read/ready/raw     the same call of libc, in the same fiber
//   pass_through/weft         read() on a plain thread, of no descriptor, which is the cheapest
//   pass_through/raw          the same call of libc
//   mutex/in_fiber, outside   pthread_mutex_lock() and _unlock() of one that is free
//
//   weft_hook_bench [--check] [--repetitions=N]
//
// Times are the least of many short repetitions, interleaved, in ns of the processor per call,
// because other work on the machine can only add to a time. --check: the exit status is 1 if a bar
// is missed. A wrong checksum always gives exit status 1.

#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"

namespace {

constexpr int calls_at_once = 500;

using read_function = ssize_t (*)(int, void*, std::size_t);

[[noreturn]] void wrong(const char* what) {
    std::fprintf(stderr, "weft_hook_bench: %s\n", what);
    std::exit(1);
}

// The processor time of this thread: other threads on the same processor are in no figure.
double cpu_ns() {
    timespec t;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

// In ns per call; each call must return `expected`.
double time_of(read_function f, int fd, ssize_t expected) {
    char byte;
    std::int64_t sum = 0;
    const double start = cpu_ns();
    for (int i = 0; i < calls_at_once; ++i) sum += f(fd, &byte, 1);
    const double ns = cpu_ns() - start;
    if (sum != expected * calls_at_once) wrong("a read gave something else");
    return ns / calls_at_once;
}

void fill(int fd) {
    static const std::string bytes(calls_at_once, 'x');
    if (::write(fd, bytes.data(), bytes.size()) != calls_at_once) wrong("a write was short");
}

// Lock and unlock.
double time_of_mutex(int (*lock)(pthread_mutex_t*), int (*unlock)(pthread_mutex_t*)) {
    constexpr int rounds = 100 * calls_at_once;  // each is short
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    int failures = 0;
    const double start = cpu_ns();
    for (int i = 0; i < rounds; ++i) failures += (lock(&m) != 0) + (unlock(&m) != 0);
    const double ns = cpu_ns() - start;
    if (failures != 0) wrong("a mutex was not locked");
    return ns / rounds;
}

struct row {
    const char* name;
    double bar;  // ns that weft may take more
    std::vector<double> raw;
    std::vector<double> weft;
};

void measure(row& r, int reader, int writer, ssize_t expected) {
    for (const bool raw : {true, false}) {
        if (writer >= 0) fill(writer);
        const double ns = time_of(raw ? weft::hook::real::read : static_cast<read_function>(::read),
                                  reader, expected);
        (raw ? r.raw : r.weft).push_back(ns);
    }
}

void measure_mutex(row& r) {
    r.raw.push_back(time_of_mutex(weft::hook::real::pthread_mutex_lock,
                                  weft::hook::real::pthread_mutex_unlock));
    r.weft.push_back(time_of_mutex(::pthread_mutex_lock, ::pthread_mutex_unlock));
}

bool report(const row& r) {
    const double raw = std::ranges::min(r.raw);
    const double hooked = std::ranges::min(r.weft);
    const bool met = hooked - raw <= r.bar;
    std::printf("%-28s raw %8.1f ns   weft %8.1f ns   %+6.1f ns   at most %+.0f ns: %s\n", r.name,
                raw, hooked, hooked - raw, r.bar, met ? "met" : "MISSED");
    return met;
}

}  // namespace

int main(int argc, char** argv) {
    bool checks = false;
    int repetitions = 1001;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--check") == 0) checks = true;
        if (std::strncmp(argv[i], "--repetitions=", 14) == 0) repetitions = std::atoi(argv[i] + 14);
    }
#if !defined(__OPTIMIZE__)
    std::fputs("weft_hook_bench: not an optimised build: the figures say little\n", stderr);
#endif
    int sockets[2];
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0 || ::pipe(ends) != 0)
        wrong("no descriptors");
    row socket = {"hooked_read/ready_socket", 0, {}, {}};
    row pipe = {"hooked_read/ready_pipe", 60, {}, {}};
    row pass = {"pass_through/read", 5, {}, {}};
    row mutex_in_fiber = {"mutex/in_fiber", 10, {}, {}};
    row mutex_outside = {"mutex/outside", 3, {}, {}};
    // A lock costs less while the process has never had a second thread.
    std::thread([] {}).join();
    weft::run([&] {
        if (!weft::hook::is_enabled()) wrong("the hooks are off");
        for (int i = 0; i < repetitions; ++i) {
            measure(socket, sockets[0], sockets[1], 1);
            measure(pipe, ends[0], ends[1], 1);
            if (i % 8 == 0) measure_mutex(mutex_in_fiber);
        }
    });
    for (int i = 0; i < repetitions; ++i) {
        measure(pass, -1, -1, -1);
        if (i % 8 == 0) measure_mutex(mutex_outside);
    }
    bool met = report(socket);
    met = report(pipe) && met;
    met = report(pass) && met;
    met = report(mutex_in_fiber) && met;
    met = report(mutex_outside) && met;
    return met || !checks ? 0 : 1;
}
