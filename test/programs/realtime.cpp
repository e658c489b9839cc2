// The wall clock decides nothing. The program replaces the C library's clocks: the real-time
// ones are an hour ahead or behind by turns, and each read of them is counted. Every way to wait
// for a time point is then used, and is neither early nor an hour late.

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <set>

#include "weft/manager/task_manager.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/timer.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/select.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/with_timeout.hpp"
#include "weft/wait/timeout_scope.hpp"
#include "weft/wheel/wheel.hpp"

using namespace std::chrono_literals;

namespace {

int real_time_reads = 0;
int monotonic_reads = 0;

std::timespec read_kernel(clockid_t id) {
    std::timespec t{};
    ::syscall(SYS_clock_gettime, id, &t);
    return t;
}

std::timespec wrong_time() {
    std::timespec t = read_kernel(CLOCK_REALTIME);
    t.tv_sec += ++real_time_reads % 2 == 0 ? 3600 : -3600;
    return t;
}

}  // namespace

// Replaces the C library's, for the whole program.
extern "C" int clock_gettime(clockid_t id, timespec* t) noexcept {
    const bool steady = id == CLOCK_MONOTONIC;
    if (steady) ++monotonic_reads;
    *t = steady ? read_kernel(id) : wrong_time();
    return 0;
}
extern "C" int gettimeofday(timeval* t, void*) noexcept {
    const std::timespec now = wrong_time();
    *t = {now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
extern "C" std::time_t time(std::time_t* t) noexcept {
    const std::time_t now = wrong_time().tv_sec;
    if (t != nullptr) *t = now;
    return now;
}

namespace {

int faults = 0;

void expect(bool well, const char* what) {
    if (!well) std::printf("%s\n", what), ++faults;
}

std::chrono::nanoseconds kernel_time() {
    const std::timespec t = read_kernel(CLOCK_MONOTONIC);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// Must take 3 ms at least, and by far no hour.
template <class F>
void waits_3_ms(const char* what, F f) {
    const auto begin = kernel_time();
    f();
    const auto took = kernel_time() - begin;
    expect(took >= 3ms, what);
    expect(took < 60s, what);
}

// If the clocks below were not replaced, the rest would prove nothing.
void can_see_who_asks() {
    static_cast<void>(std::chrono::system_clock::now());
    static_cast<void>(::time(nullptr));
    timeval t;
    ::gettimeofday(&t, nullptr);
    expect(real_time_reads >= 3, "the clocks of the C library are not replaced");
    static_cast<void>(weft::steady_now());
    expect(monotonic_reads >= 1, "the monotonic clock is not replaced");
}

// A wheel reads no clock at all: it has only the time that advance() passes to it.
void a_wheel() {
    weft::wheel w;
    const int before = monotonic_reads;
    weft::wheel_node nodes[100];
    weft::tick deadline = 0;
    for (weft::wheel_node& n : nodes) w.add(n, deadline += 2);
    w.remove(nodes[50]);
    std::size_t fired = 0;
    while (w.next() != weft::tick_never) fired += w.advance(w.next(), [](weft::wheel_node&) {});
    expect(fired == 99, "a wheel did not fire all");
    expect(monotonic_reads == before, "a wheel asked for the time");
}

weft::task<> sleeps(weft::duration d) { co_await weft::sleep_for(d); }

void of_a_fiber() {
    weft::mutex held, free;
    held.lock();
    weft::channel<int> silent;
    weft::condition_variable changed;
    waits_3_ms("sleep_for", [] { weft::this_fiber::sleep_for(3ms); });
    waits_3_ms("sleep_until", [] { weft::this_fiber::sleep_until(weft::now() + 3ms); });
    waits_3_ms("try_lock_for", [&] { expect(!held.try_lock_for(3ms), "it is held"); });
    waits_3_ms("recv", [&] { expect(!silent.recv(3ms), "nobody sends"); });
    waits_3_ms("select", [&] {
        expect(weft::select(weft::on_recv(silent, [](int) {}), weft::on_timeout(3ms, [] {})) == 1,
               "nobody sends");
    });
    waits_3_ms("wait_for", [&] {
        std::unique_lock lock(free);
        expect(changed.wait_for(lock, 3ms) == std::cv_status::timeout, "nothing changes");
    });
    waits_3_ms("timeout_scope", [&] {
        const weft::timeout_scope limit(3ms);
        expect(!silent.recv(), "nobody sends");
        expect(limit.has_expired(), "it has ended the wait");
    });
    waits_3_ms("with_timeout", [] {
        const auto r = weft::await(weft::with_timeout(sleeps(1h), 3ms));
        expect(r.error() == std::errc::timed_out, "it is too long");
    });
    held.unlock();
}

void of_a_loop() {
    weft::loop l;
    waits_3_ms("run_once", [&] { l.run_once(weft::steady_now() + 3ms); });
    waits_3_ms("timer", [&] {
        const weft::timer t(l, 3ms, [] {});
        l.run();
    });
    waits_3_ms("periodic timer", [&] {
        int calls = 0;
        weft::timer t(l, 1ms, 1ms, [&] {
            if (++calls == 3) t.stop();
        });
        l.run();
        expect(calls == 3, "it is called three times");
    });
}

// An id is a slot and its generation: no clock has a part in it.
void of_a_manager() {
    weft::loop l;
    weft::task_manager<> m({.on = l, .timers = &l});
    const int before = monotonic_reads;
    std::set<std::uint64_t> ids;
    for (int n = 0; n < 10'000; ++n) {
        const auto id = m.spawn([] {}, {.launch = weft::launch::deferred});
        ids.insert(*id);
        m.kill(*id);
    }
    expect(ids.size() == 10'000, "an id was given twice");
    expect(monotonic_reads == before, "an id took the time");
    waits_3_ms("timeout of a managed task", [&] {
        expect(m.spawn([] { weft::this_fiber::sleep_for(1h); }, {.timeout = 3ms}).has_value(),
               "there is room");
        l.run();
    });
    expect(m.stats().timed_out_count == 1, "it is late");
}

void of_a_thread() {
    weft::channel<int> silent;
    waits_3_ms("recv on a thread", [&] { expect(!silent.recv(3ms), "nobody sends"); });
    waits_3_ms("sync_wait", [] { weft::sync_wait(sleeps(3ms)); });
}

}  // namespace

int main() {
    can_see_who_asks();
    real_time_reads = 0;
    a_wheel();
    weft::run(of_a_fiber);
    of_a_loop();
    of_a_thread();
    of_a_manager();
    expect(real_time_reads == 0, "somebody asked what time it is for people");
    std::printf("asked: monotonic %d times, real time %d times; %d faults\n", monotonic_reads,
                real_time_reads, faults);
    return faults == 0 ? 0 : 1;
}
