#include "bench/harness.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <set>

namespace bench {

namespace {

bool error_seen = false;

double seconds(clockid_t clock) noexcept {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

sample& shared_sample() {
    static auto* const shared = [] {
        void* p = mmap(nullptr, sizeof(sample), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0);
        if (p == MAP_FAILED) {
            std::perror("weft_bench: mmap");
            std::exit(1);
        }
        return static_cast<sample*>(p);
    }();
    return *shared;
}

// The child's whole life. The child exits without running destructors: the kernel reclaims what a
// subject leaves behind, and no peer is made to pay for that.
[[noreturn]] void live_as_child(const std::function<void(meter&)>& subject, sample& s) {
    meter m(s);
    try {
        subject(m);
        s.complete = true;
    } catch (const std::exception& e) {
        m.expect(false, e.what());
    }
    _exit(0);
}

// Runs the subject in a child and waits for the child. s records every outcome, also a crash.
void run_in_a_child(const std::function<void(meter&)>& subject, sample& s) {
    std::memset(static_cast<void*>(&s), 0, sizeof s);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) live_as_child(subject, s);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        meter(s).expect(false, "no child could be started");
    } else if (WIFSIGNALED(status)) {
        std::snprintf(s.error, sizeof s.error, "died of signal %d (%s)", WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
    } else if (!s.complete) {
        meter(s).expect(false, "left before its end");
    }
}

void run_case(benchmark::State& state, const std::string& name,
              const std::function<void(meter&)>& subject) {
    sample& s = shared_sample();
    double wall = 0;
    double cpu = 0;
    double began = 0;
    for (auto _ : state) {
        run_in_a_child(subject, s);
        if (s.error[0] != '\0') {
            error_seen = true;
            std::fprintf(stderr, "weft_bench: ERROR: %s: %s\n", name.c_str(), s.error);
            state.SkipWithError(s.error);
            break;
        }
        state.SetIterationTime(s.operations > 0 ? s.wall_seconds / s.operations : 0);
        wall += s.wall_seconds;
        cpu += s.cpu_seconds;
        if (began == 0) began = s.began;
        for (std::size_t i = 0; i < s.counter_count; ++i) {
            state.counters[s.counters[i].name] = s.counters[i].value;
        }
    }
    state.counters["cpu_share"] = wall > 0 ? cpu / wall : 1;
    state.counters["began"] = began;
    state.counters["ended"] = s.ended;
}

}  // namespace

// The clocks are nested: the cost of reading the CPU clock (a system call) is not in the wall time.
void meter::start() noexcept {
    cpu_started_ = seconds(CLOCK_PROCESS_CPUTIME_ID);
    wall_started_ = seconds(CLOCK_MONOTONIC);
    if (sample_.began == 0) sample_.began = wall_started_;
}

void meter::stop(std::size_t operations) noexcept {
    sample_.ended = seconds(CLOCK_MONOTONIC);
    sample_.wall_seconds += sample_.ended - wall_started_;
    sample_.cpu_seconds += seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_started_;
    sample_.operations += static_cast<double>(operations);
}

void meter::counter(const char* name, double value) noexcept {
    if (sample_.counter_count == sample::counter_limit) return;
    sample::counter& c = sample_.counters[sample_.counter_count++];
    std::snprintf(c.name, sizeof c.name, "%s", name);
    c.value = value;
}

void meter::expect(bool condition, const char* what) noexcept {
    if (condition || sample_.error[0] != '\0') return;
    std::snprintf(sample_.error, sizeof sample_.error, "%s", what);
}

void meter::expect_equal(std::uint64_t found, std::uint64_t wanted, const char* what) noexcept {
    if (found == wanted || sample_.error[0] != '\0') return;
    std::snprintf(sample_.error, sizeof sample_.error, "checksum: %s is %llu, not %llu", what,
                  static_cast<unsigned long long>(found), static_cast<unsigned long long>(wanted));
}

void skip_aloud(const char* peer, const char* missing) {
    static std::set<std::string> said;
    if (!said.insert(peer).second) return;
    std::fprintf(stderr, "weft_bench: skipped %s: %s\n", peer, missing);
}

void add_case(const std::string& name, plan how, std::function<void(meter&)> subject) {
    auto* const b = benchmark::RegisterBenchmark(
        name.c_str(),
        [name, run = std::move(subject)](benchmark::State& state) { run_case(state, name, run); });
    b->UseManualTime()->Iterations(how.children)->Unit(how.unit);
    if (how.repetitions > 0) b->Repetitions(how.repetitions);
}

bool any_error() noexcept { return error_seen; }

}  // namespace bench
