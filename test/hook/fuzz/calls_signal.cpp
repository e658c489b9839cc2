// Signals: to the one that waits, to the caller itself, and those that are blocked and waited for.

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

constexpr choice handled[] = {{"plain", SIGUSR1}, {"restart", SIGURG}, {"ignored", SIGWINCH}};
constexpr choice blocked[] = {{"alarm", SIGALRM}, {"queued", 0}};
constexpr choice sets[] = {{"alarm", 1}, {"queued", 2}, {"both", 3}};
constexpr choice spans[] = {{"now", 0}, {"1ms", 1, true}, {"forever", -1}, {"bad", -2}};

unsigned count_after(int signal, unsigned before) {
    // Its handler may run on another processor.
    for (unsigned i = 0; signal != SIGWINCH && world::user_signals == before && i != 1000; ++i) {
        const ::timespec moment = {0, 50'000};
        ::syscall(SYS_nanosleep, &moment, nullptr);
    }
    return world::user_signals - before;
}

// Of the actors exactly one waits. On threads it is the signal's thread; of fibers it is the only
// one that a handler on the thread of the loop can be about.
void signals_the_waiting(making& m) {
    if (m.here.only_waiting == nullptr) return m.say("not one");
    const unsigned before = world::user_signals;
    m.tell(m.here.in_fibers() ? ::kill(::getpid(), m.number(0))
                              : ::pthread_kill(*m.here.only_waiting, m.number(0)));
    m.say("signals " + std::to_string(count_after(m.number(0), before)));
}

void raises(making& m) {
    const unsigned before = world::user_signals;
    m.tell(::raise(m.number(0)));
    m.say("signals " + std::to_string(world::user_signals - before));
}

int number_of(long value) { return value != 0 ? static_cast<int>(value) : SIGRTMIN + 3; }

::sigset_t set_of(long bits) {
    ::sigset_t s;
    sigemptyset(&s);
    if ((bits & 1) != 0) sigaddset(&s, SIGALRM);
    if ((bits & 2) != 0) sigaddset(&s, number_of(0));
    return s;
}

void queues(making& m) {
    ::sigval given{};
    given.sival_int = static_cast<int>(m.given(1)[0]);
    m.tell(::sigqueue(::getpid(), number_of(m.value(0)), given));
}

void tells_pending(making& m) {
    ::sigset_t s;
    m.tell(::sigpending(&s));
    m.say(sigismember(&s, SIGALRM) == 1 ? "alarm" : "none");
    m.say(sigismember(&s, number_of(0)) == 1 ? "queued" : "none");
}

std::string name_of(int signal) {
    return signal == SIGALRM ? "alarm" : signal == number_of(0) ? "queued" : std::to_string(signal);
}

void waits_for_signal(making& m) {
    const ::sigset_t s = set_of(m.value(0));
    int number = 0;
    const int why = ::sigwait(&s, &number);
    m.tell_error(why);
    if (why == 0) m.say(name_of(number));
}

void waits_for_signal_until(making& m) {
    const ::sigset_t s = set_of(m.value(0));
    const long ms = m.value(1);
    const ::timespec span = {0, ms == -2 ? 2'000'000'000 : ms * 1'000'000};
    ::siginfo_t about{};
    const int n = ms == -1 ? ::sigwaitinfo(&s, &about) : ::sigtimedwait(&s, &about, &span);
    if (n <= 0) {
        m.tell(n);
        return;
    }
    m.say(name_of(n) + " " + std::to_string(about.si_code) + " " +
          std::to_string(about.si_value.sival_int));
}

void suspends(making& m) {
    ::sigset_t mask;
    sigfillset(&mask);
    // A thread is ended by the first; the others are for whatever waits.
    for (const int n : {SIGUSR2, SIGUSR1, SIGURG}) sigdelset(&mask, n);
    for (const int n : {SIGALRM, number_of(0)})
        if ((m.value(0) & (n == SIGALRM ? 1 : 2)) != 0) sigdelset(&mask, n);
    const unsigned before = world::user_signals;
    m.tell(::sigsuspend(&mask));
    m.say("signals " + std::to_string(world::user_signals - before));
}

}  // namespace

void add_signals(std::vector<call_spec>& all) {
    all.push_back({"signal", 10, looks, {one_of(handled)}, signals_the_waiting});
    all.push_back({"raise", 2, looks, {one_of(handled)}, raises});
    all.push_back({"sigqueue", 5, looks, {one_of(blocked)}, queues});
    all.push_back({"sigpending", 1, looks, {}, tells_pending});
    all.push_back({"sigwait", 2, of_signals, {one_of(sets)}, waits_for_signal});
    all.push_back(
        {"sigtimedwait", 4, of_signals, {one_of(sets), one_of(spans)}, waits_for_signal_until});
    all.push_back({"pause", 1, looks, {}, [](making& m) { m.tell(::pause()); }});
    all.push_back({"sigsuspend", 2, of_signals, {one_of(sets)}, suspends});
}

}  // namespace weft::testing::fuzz
