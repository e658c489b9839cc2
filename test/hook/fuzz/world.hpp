// world: the state of one run of a program: slots with descriptors, children, counts of signals;
// and `making`, a step from the point of view of the call that it makes.
//
// A slot is named by its index, and answers name no file descriptors: these may differ between a
// thread and a fiber, because the loop of a fiber has some of its own.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "test/hook/fuzz/program.hpp"

namespace weft::testing::fuzz {

// Its name in errno.h, or its number.
std::string name_of_error(int error);

bool is_epoll_set(int fd);

// What a program's actors wait for besides descriptors: one of these.
struct shared_object {
    unsigned what = 0;        // of `kind`
    int id = -1;              // of System V
    bool is_checked = false;  // it refuses an unlock by an agent that is not its owner
    ::pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ::pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    ::pthread_rwlock_t both = PTHREAD_RWLOCK_INITIALIZER;
    ::sem_t count;
    std::array<std::atomic<unsigned>, actor_count> held{};  // how often, by each

    shared_object() = default;
    shared_object(const shared_object&) = delete;
    shared_object& operator=(const shared_object&) = delete;
    ~shared_object();
};

struct slot {
    int fd = -1;
    unsigned file = 0;  // the same for all descriptors of one open file; 0: none
    unsigned pipe = 0;  // the same for both ends of one pipe; 0: it is none
    ::pid_t child = 0;
    int gate = -1;  // a byte into it lets the child end
    std::unique_ptr<shared_object> object;
};

class world {
public:
    explicit world(bool in_fibers, int planted) noexcept;
    world(const world&) = delete;
    world& operator=(const world&) = delete;
    ~world();

    // What the step answered. Any actor, one at a time on each.
    std::string run(const program& p, unsigned at);
    // The state of its slots from outside, when all is done.
    std::string last_look();

    // Whether the actor has a lock, and so must not wait for another.
    bool holds(unsigned actor) const noexcept;
    // An actor that is done releases what it has.
    void release(unsigned actor);
    // Ends waits for what no signal and no stop need end.
    void wake_all();
    // Of the signals that all block.
    static void send_blocked();
    static void take_blocked() noexcept;

    slot& at(unsigned i) noexcept { return slots_[i]; }
    void put(unsigned i, int fd) noexcept;
    void put_object(unsigned i, std::unique_ptr<shared_object> o) noexcept;
    void put_copy(unsigned i, int fd, unsigned of) noexcept;
    void join_ends(unsigned a, unsigned b) noexcept;

    bool has_terminal() const noexcept;

    bool in_fibers() const noexcept { return in_fibers_; }
    bool is_planted(unsigned call) const noexcept {
        return in_fibers_ && static_cast<int>(call) == planted_;
    }
    bool gives_much = false;  // to a terminal, for one
    std::atomic<bool> urgent_taken{false};
    bool has_parts = false;  // a long transfer is made: how much fits is the system's own

    // While a step is made: of the actors that wait, if it is one. Of a fiber it is no handle.
    const ::pthread_t* only_waiting = nullptr;

    // Of the process: by handlers.
    static std::atomic<unsigned> pipe_signals;
    static std::atomic<unsigned> user_signals;

private:
    const bool in_fibers_;
    const int planted_;
    std::atomic<unsigned> files_{0};
    std::array<slot, slot_count> slots_{};
};

class making {
public:
    making(world& w, const program& p, unsigned at) noexcept
        : here(w), step_(p[at]), at_(at), spec_(calls()[step_.call]) {}

    int fd(unsigned i) const noexcept { return here.at(step_.arguments[i]).fd; }
    unsigned place(unsigned i) const noexcept { return step_.arguments[i]; }
    long value(unsigned i) const noexcept {
        return spec_.parameters[i].choices[step_.arguments[i]].value;
    }
    int number(unsigned i) const noexcept { return static_cast<int>(value(i)); }
    std::size_t size(unsigned i) const noexcept { return static_cast<std::size_t>(value(i)); }
    unsigned actor() const noexcept { return step_.actor; }
    // None where the slot has not that.
    shared_object* object(unsigned i, unsigned what) const noexcept {
        shared_object* const o = here.at(step_.arguments[i]).object.get();
        return o != nullptr && o->what == what ? o : nullptr;
    }
    void put(unsigned i, int fd) const noexcept { here.put(step_.arguments[i], fd); }

    // Whether no bytes are to come from a connection, which is a case of its own: docs/hooks.md,
    // allowed differences, 9.
    bool takes_nothing(unsigned i, std::size_t bytes);
    // Whether the call peeks at all bytes where an urgent byte has been taken: the same, 16.
    bool looks_past_urgent(int flags);
    void took(long count, int flags) noexcept {
        if (count > 0 && (flags & MSG_OOB) != 0) here.urgent_taken = true;
    }

    // As many bytes as no other step writes.
    std::string given(std::size_t bytes) const {
        return std::string(bytes, static_cast<char>('a' + at_ % 26));
    }

    // The answer, with errno where it fails.
    long tell(long answer);
    // The answer of a call that returns its error.
    int tell_error(int error);
    // The answer of a call that moves bytes, of which it was to move `wanted`.
    long tell_moved(long answer, std::size_t wanted);
    void say(const std::string& what);
    // Which bytes they are: a3 b2.
    void say_bytes(const std::string& bytes, long count);

    world& here;
    std::string text;

private:
    const step& step_;
    const unsigned at_;
    const call_spec& spec_;
};

}  // namespace weft::testing::fuzz
