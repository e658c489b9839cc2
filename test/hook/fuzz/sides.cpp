#include "test/hook/fuzz/sides.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <thread>

#include "test/hook/fuzz/tables.hpp"
#include "test/hook/fuzz/world.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/driver_uring.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sync/counting_semaphore.hpp"

namespace weft::testing::fuzz {
namespace {

using namespace std::chrono_literals;

// Checks whether the thread of a loop makes progress; where it does not, a call has blocked the
// thread, and a signal ends the call.
class guard {
public:
    void watch(::pthread_t thread, unsigned slowness) {
        thread_ = thread;
        patience_.store(slowness * 40, std::memory_order_relaxed);
        blocked_.store(false, std::memory_order_relaxed);
        beats_.fetch_add(1, std::memory_order_release);
        watches_.store(true, std::memory_order_release);
    }
    void leave() { watches_.store(false, std::memory_order_release); }
    void beat() { beats_.fetch_add(1, std::memory_order_relaxed); }
    bool take_blocked() { return blocked_.exchange(false, std::memory_order_relaxed); }

    void run() {
        unsigned seen = 0;
        unsigned still = 0;
        for (;;) {
            const ::timespec moment = {0, 1000 * 1000};
            ::nanosleep(&moment, nullptr);
            const unsigned now_at = beats_.load(std::memory_order_relaxed);
            if (!watches_.load(std::memory_order_acquire) || now_at != seen) {
                seen = now_at;
                still = 0;
                continue;
            }
            if (++still < patience_.load(std::memory_order_relaxed)) continue;
            blocked_.store(true, std::memory_order_relaxed);
            ::pthread_kill(thread_, SIGUSR2);
            still = 0;
        }
    }

private:
    std::atomic<bool> watches_{false};
    std::atomic<unsigned> beats_{0};
    std::atomic<unsigned> patience_{40};
    std::atomic<bool> blocked_{false};
    ::pthread_t thread_{};
};

guard& the_guard() {
    static guard g;
    return g;
}

// The settings of a descriptor that a call reads at its start, and that a thread's call reads again
// where it continues.
struct settings {
    bool is_nonblocking = false;
    std::array<::timeval, 2> times{};  // SO_RCVTIMEO, SO_SNDTIMEO

    settings() = default;
    explicit settings(int fd) noexcept {
        const int flags = ::fcntl(fd, F_GETFL);
        is_nonblocking = flags >= 0 && (flags & O_NONBLOCK) != 0;
        ask(fd, SO_RCVTIMEO, times[0]);
        ask(fd, SO_SNDTIMEO, times[1]);
    }
    bool operator==(const settings& other) const noexcept {
        const auto is_alike = [](const ::timeval& a, const ::timeval& b) {
            return a.tv_sec == b.tv_sec && a.tv_usec == b.tv_usec;
        };
        return is_nonblocking == other.is_nonblocking && is_alike(times[0], other.times[0]) &&
               is_alike(times[1], other.times[1]);
    }

private:
    static void ask(int fd, int name, ::timeval& into) noexcept {
        ::socklen_t bytes = sizeof into;
        ::getsockopt(fd, SOL_SOCKET, name, &into, &bytes);
    }
};

struct actor {
    counting_semaphore<> begins{0};
    std::atomic<bool> over{false};
    unsigned at = 0;                                // the step that it makes
    std::array<settings, most_parameters> found{};  // of its slots, at the step's start
    std::string answer;
    std::atomic<bool> answered{true};
    bool is_told = true;
    ::pthread_t thread{};
    bool has_thread = false;
    bool has_ended() const noexcept { return ended.load(std::memory_order_acquire); }
    std::atomic<bool> ended{false};
};

// Whether a step is to move more than so many bytes. It is checked in advance, so that no answer
// depends on the time of another.
bool moves_more_than(const program& p, long most) {
    for (const step& s : p) {
        const call_spec& c = calls()[s.call];
        for (std::size_t i = 0; i != c.parameters.size(); ++i) {
            const auto choices = c.parameters[i].choices;
            if (choices.data() == std::data(sizes) && choices[s.arguments[i]].value > most)
                return true;
        }
        if (std::string_view(c.name) == "sndbuf") return true;
    }
    return false;
}

bool is_stream(int fd) noexcept {
    int type = 0;
    ::socklen_t bytes = sizeof type;
    return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
}

bool is_local(int fd) noexcept {
    int domain = 0;
    ::socklen_t bytes = sizeof domain;
    return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

class play {
public:
    play(const program& p, const run_options& o, bool in_fibers)
        : program_(p), world_(in_fibers, o.planted), slowness_(o.slowness) {
        const auto base = is_timed(p) ? 14ms : 3ms;
        grace_ = base * slowness_;
        world_.has_parts = moves_more_than(p, 8 * 4096);  // than any file takes at once
        world_.gives_much = moves_more_than(p, 128);
    }

    void act(unsigned i) {
        actor& a = actors_[i];
        for (;;) {
            a.begins.acquire();
            if (a.over.load(std::memory_order_acquire)) break;
            a.answer = world_.run(program_, a.at);
            a.answered.store(true, std::memory_order_release);
            reports_.release();
            if (a.over.load(std::memory_order_acquire)) break;
        }
        world_.release(i);
        a.ended.store(true, std::memory_order_release);
    }

    void direct() {
        for (unsigned i = 0; i != program_.size(); ++i) {
            now_at_ = i;
            begin(i);
        }
        rest();
        say("at the end: " + world_.last_look());
    }

    // Each ends; end_one ends what waits.
    void end(const std::function<void(unsigned)>& end_one, const std::function<void()>& pause) {
        for (actor& a : actors_) a.over.store(true, std::memory_order_release);
        for (actor& a : actors_)
            if (a.answered.load(std::memory_order_acquire)) a.begins.release();
        // All in turn: one may wait for what another holds that waits as well.
        for (bool all = false; !all;) {
            all = true;
            for (unsigned i = 0; i != actor_count; ++i) {
                if (actors_[i].has_ended()) continue;
                all = false;
                if (actors_[i].answered.load(std::memory_order_acquire)) continue;
                world_.wake_all();
                if ((calls()[program_[actors_[i].at].call].does & of_signals) != 0)
                    world::send_blocked();
                end_one(i);
            }
            if (!all) pause();
        }
    }

    actor& actor_at(unsigned i) { return actors_[i]; }
    transcript& said() { return said_; }

private:
    void say(std::string text) { said_.push_back(std::move(text)); }

    bool waits(const actor& a) const { return !a.is_told; }

    // Why the step is left out, if it is.
    const char* obstacle(const step& s) {
        if (waits(actors_[s.actor])) return "the actor waits";
        const call_spec& mine = calls()[s.call];
        // How much more it takes is the system's own.
        if (terminal_was_given_much_ && ((mine.does & gives) != 0 || asks_for_room(mine)))
            for (std::size_t i = 0; i != mine.parameters.size(); ++i) {
                if (!mine.parameters[i].is_slot()) continue;
                const int fd = world_.at(s.arguments[i]).fd;
                // A set may have one in it.
                if (::isatty(fd) != 0 || is_epoll_set(fd)) return "in use";
            }
        // There would be no end to a circle.
        const auto& wanted = world_.at(s.arguments[0]).object;
        const bool is_its_own = wanted != nullptr && wanted->held[s.actor] != 0;
        if ((mine.does & locks) != 0 && !is_its_own && world_.holds(s.actor))
            return "the actor has a lock";
        for (const actor& a : actors_) {
            if (!waits(a)) continue;
            const step& other = program_[a.at];
            const call_spec& its = calls()[other.call];
            if ((mine.does & its.does & of_signals) != 0) return "in use";
            if (is_changed(a) && (goes_on_at_signal(mine) || goes_on_as_taken(mine, its)))
                return "in use";
            if (std::string_view(mine.name) == "shutdown" &&
                std::string_view(its.name) == "connect")
                return "in use";
            // How many of several messages there are when a receiver of bytes checks.
            if (std::string_view(mine.name) == "sendmmsg" && (its.does & takes) != 0 &&
                is_stream(world_.at(other.arguments[0]).fd))
                return "in use";
            // One call may take what the other finds, before the other checks.
            if (asks_for_room(mine) != asks_for_room(its) && share_a_file(s, other) &&
                ((mine.does | its.does) & (takes | gives)) != 0)
                return "in use";
            // An arrival lets a thread check again that waits for room for its own bytes.
            if ((mine.does & its.does & gives) != 0 && uses_local_sockets(s) &&
                uses_local_sockets(other))
                return "in use";
            for (std::size_t i = 0; i != mine.parameters.size(); ++i) {
                if (!mine.parameters[i].is_slot()) continue;
                const bool changes = mine.parameters[i].fills || (i == 0 && (mine.does & ends));
                for (std::size_t k = 0; k != its.parameters.size(); ++k) {
                    if (!its.parameters[k].is_slot()) continue;
                    const unsigned x = s.arguments[i];
                    const unsigned y = other.arguments[k];
                    if (x == y && (changes || its.parameters[k].fills)) return "in use";
                    const bool same = is_one_file(x, y);
                    if (same && (mine.does & its.does & (takes | gives)) != 0) return "in use";
                    // How much it has taken so far is the system's own.
                    if (same && (its.does & gives) != 0 && ::isatty(world_.at(x).fd) != 0)
                        return "in use";
                    const bool one_pipe =
                        world_.at(x).pipe != 0 && world_.at(x).pipe == world_.at(y).pipe;
                    if ((same || one_pipe) && (its.does & holds) != 0) return "in use";
                }
            }
        }
        return nullptr;
    }

    // Whether the settings of a descriptor have changed since the waiting call started.
    bool is_changed(const actor& a) {
        const step& s = program_[a.at];
        const call_spec& c = calls()[s.call];
        for (std::size_t i = 0; i != c.parameters.size(); ++i)
            if (c.parameters[i].is_slot() && !(found_at(s, i) == a.found[i])) return true;
        return false;
    }
    settings found_at(const step& s, std::size_t i) {
        return settings(world_.at(s.arguments[i]).fd);
    }
    bool is_one_file(unsigned x, unsigned y) {
        return x == y || (world_.at(x).file != 0 && world_.at(x).file == world_.at(y).file);
    }
    bool share_a_file(const step& a, const step& b) {
        const call_spec& mine = calls()[a.call];
        const call_spec& its = calls()[b.call];
        for (std::size_t i = 0; i != mine.parameters.size(); ++i)
            for (std::size_t k = 0; k != its.parameters.size(); ++k) {
                if (!mine.parameters[i].is_slot() || !its.parameters[k].is_slot()) continue;
                if (is_one_file(a.arguments[i], b.arguments[k])) return true;
            }
        return false;
    }
    bool uses_local_sockets(const step& s) {
        const call_spec& c = calls()[s.call];
        for (std::size_t i = 0; i != c.parameters.size(); ++i)
            if (c.parameters[i].is_slot() && is_local(world_.at(s.arguments[i]).fd)) return true;
        return false;
    }
    static bool asks_for_room(const call_spec& mine) noexcept {
        const std::string_view name(mine.name);
        return name.find("poll") != name.npos || name.find("select") != name.npos;
    }
    // A handler with SA_RESTART restarts the call of a thread.
    static bool goes_on_at_signal(const call_spec& mine) noexcept {
        return std::string_view(mine.name) == "signal";
    }
    // A call that gives continues with the rest when another call takes.
    static bool goes_on_as_taken(const call_spec& mine, const call_spec& its) noexcept {
        return (its.does & gives) != 0 && (mine.does & takes) != 0;
    }

    void begin(unsigned i) {
        const step& s = program_[i];
        if (const char* const why = obstacle(s)) {
            say(std::to_string(i) + ": left out: " + why);
            return;
        }
        rest();
        const unsigned signals = world::pipe_signals.load();
        actor& a = actors_[s.actor];
        world_.only_waiting = nullptr;
        unsigned count = 0;
        for (const actor& other : actors_)
            if (waits(other) && ++count == 1) world_.only_waiting = &other.thread;
        if (count != 1) world_.only_waiting = nullptr;
        a.at = i;
        for (std::size_t k = 0; k != calls()[s.call].parameters.size(); ++k)
            if (calls()[s.call].parameters[k].is_slot()) a.found[k] = found_at(s, k);
        a.is_told = false;
        a.answered.store(false, std::memory_order_release);
        a.begins.release();
        if (world_.gives_much && (calls()[s.call].does & gives) != 0 && world_.has_terminal())
            terminal_was_given_much_ = true;
        settle();
        // A timer that was set fires before the next step, and not during one.
        if (std::string_view(calls()[s.call].name) == "settime") rest_for(3ms);
        if (waits(a)) say(std::to_string(i) + ": waits");
        if (const unsigned more = world::pipe_signals.load() - signals)
            say(std::to_string(i) + ": SIGPIPE " + std::to_string(more));
        if (world_.in_fibers() && the_guard().take_blocked())
            say(std::to_string(i) + ": the thread of the loop was blocked");
    }

    // A worker of the system passes a terminal's input to its other side a little later.
    void rest() {
        if (world_.has_terminal()) rest_for(std::chrono::milliseconds(slowness_));
    }
    void rest_for(std::chrono::milliseconds span) {
        const time_point until = after(now(), span);
        while (!nothing_.try_acquire_until(until) && now() < until) {
        }
        the_guard().beat();
    }

    void settle() {
        const time_point until = after(now(), std::chrono::duration_cast<duration>(grace_));
        for (;;) {
            bool all = true;
            for (const actor& a : actors_) all = all && a.answered.load(std::memory_order_acquire);
            if (all) break;
            the_guard().beat();
            if (reports_.try_acquire_until(std::min(until, after(now(), duration(2ms))))) continue;
            if (now() >= until) break;
        }
        while (reports_.try_acquire()) {
        }
        for (unsigned i = 0; i != actor_count; ++i) {
            actor& a = actors_[i];
            if (a.is_told || !a.answered.load(std::memory_order_acquire)) continue;
            a.is_told = true;
            say(std::to_string(now_at_) + ": " +
                (a.at == now_at_ ? "" : std::to_string(a.at) + " ends: ") + a.answer);
        }
    }

    const program& program_;
    world world_;
    const unsigned slowness_;
    std::chrono::milliseconds grace_;
    std::array<actor, actor_count> actors_;
    counting_semaphore<> reports_{0};
    counting_semaphore<> nothing_{0};
    unsigned now_at_ = 0;
    bool terminal_was_given_much_ = false;
    transcript said_;
};

void pause_thread() {
    const ::timespec moment = {0, 200 * 1000};
    ::nanosleep(&moment, nullptr);
}

}  // namespace

transcript run_in_threads(const program& p, const run_options& o) {
    play all(p, o, false);
    std::list<std::thread> threads;
    for (unsigned i = 0; i != actor_count; ++i) {
        threads.emplace_back([&all, i] { all.act(i); });
        all.actor_at(i).thread = threads.back().native_handle();
    }
    // On a thread of its own, so that a stray signal reaches no thread that others need.
    all.direct();
    all.end([&](unsigned i) { ::pthread_kill(all.actor_at(i).thread, SIGUSR2); }, pause_thread);
    for (std::thread& t : threads) t.join();
    return std::move(all.said());
}

transcript run_in_fibers(const program& p, const run_options& o, io_kind driver) {
    play all(p, o, true);
    {
        loop l(make_io_driver(driver));
        the_guard().watch(::pthread_self(), o.slowness);
        fiber director(
            [&] {
                std::list<fiber> fibers;
                for (unsigned i = 0; i != actor_count; ++i)
                    fibers.emplace_back([&all, i] { all.act(i); });
                all.direct();
                auto at = fibers.begin();
                std::array<fiber*, actor_count> each;
                for (fiber*& f : each) f = &*at++;
                all.end([&](unsigned i) { each[i]->request_stop(); },
                        [] {
                            the_guard().beat();
                            this_fiber::sleep_for(200us);
                        });
                for (fiber& f : fibers) f.join();
            },
            {.name = "director", .on = l});
        l.run();
        the_guard().leave();
    }
    return std::move(all.said());
}

void begin_process() {
    struct ::sigaction s = {};
    s.sa_handler = [](int) {};
    ::sigaction(SIGUSR2, &s, nullptr);
    s.sa_handler = [](int) { ++world::user_signals; };
    ::sigaction(SIGUSR1, &s, nullptr);
    ::sigaction(SIGALRM, &s, nullptr);
    ::sigaction(SIGRTMIN + 3, &s, nullptr);
    s.sa_flags = SA_RESTART;
    ::sigaction(SIGURG, &s, nullptr);
    s.sa_flags = 0;
    // Blocked by each thread that there will be.
    ::sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    sigaddset(&blocked, SIGRTMIN + 3);
    ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    s.sa_handler = [](int) { ++world::pipe_signals; };
    ::sigaction(SIGPIPE, &s, nullptr);
    std::thread([] { the_guard().run(); }).detach();
}

const std::vector<io_kind>& drivers() {
    static const std::vector<io_kind> all = [] {
        std::vector<io_kind> found{io_kind::epoll, io_kind::poll};
        if (make_driver_uring(nullptr) != nullptr) found.push_back(io_kind::io_uring);
        return found;
    }();
    return all;
}

const char* name_of_driver(io_kind k) {
    return k == io_kind::epoll ? "epoll" : k == io_kind::io_uring ? "io_uring" : "poll";
}

}  // namespace weft::testing::fuzz
