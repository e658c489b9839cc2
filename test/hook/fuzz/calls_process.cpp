// Other processes: a child that does something to what it shares with the program, and ends, at
// once or when it is released; waits for it; locks of files.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

enum deed : long { nothing, clears_nonblock, sets_nonblock, writes_a_byte, locks, flocks };
constexpr choice deeds[] = {{"nothing", nothing},
                            {"clear_nonblock", clears_nonblock},
                            {"set_nonblock", sets_nonblock},
                            {"write", writes_a_byte},
                            {"lock", locks},
                            {"flock", flocks}};
constexpr choice lives[] = {{"ends", 0}, {"stays", 1}};
constexpr choice options[] = {{"plain", 0}, {"nohang", WNOHANG}};
constexpr choice which[] = {{"it", 0}, {"any", -1}};
constexpr choice lock_types[] = {{"write", F_WRLCK}, {"read", F_RDLCK}, {"unlock", F_UNLCK}};
constexpr choice lock_waits[] = {{"set", F_SETLK}, {"wait", F_SETLKW}};
constexpr choice flock_ways[] = {{"ex", LOCK_EX}, {"sh+nb", LOCK_SH | LOCK_NB}, {"un", LOCK_UN}};

// In the child, where only what is safe in a handler of signals may be called.
void does(long what, int fd) {
    struct ::flock l = {};
    l.l_type = F_WRLCK;
    switch (what) {
        case clears_nonblock:
        case sets_nonblock: {
            const long flags = ::syscall(SYS_fcntl, fd, F_GETFL);
            ::syscall(SYS_fcntl, fd, F_SETFL,
                      what == sets_nonblock ? flags | O_NONBLOCK : flags & ~long{O_NONBLOCK});
            break;
        }
        case writes_a_byte:
            ::syscall(SYS_fcntl, fd, F_SETFL, ::syscall(SYS_fcntl, fd, F_GETFL) | O_NONBLOCK);
            ::syscall(SYS_write, fd, "Z", 1);
            break;
        case locks:
            ::syscall(SYS_fcntl, fd, F_SETLK, &l);
            break;
        case flocks:
            ::syscall(SYS_flock, ::syscall(SYS_dup, fd), LOCK_EX | LOCK_NB);
            break;
        default:
            break;
    }
}

// Waits until the child has ended, and leaves it unreaped. By no hooked call, like everything here
// that starts and ends a child, because that is not what is compared.
void see_the_end_of(::pid_t child) {
    ::siginfo_t about;
    ::syscall(SYS_waitid, P_PID, child, &about, WEXITED | WNOWAIT, nullptr);
}

void forks(making& m) {
    slot& s = m.here.at(m.place(0));
    int ready[2];
    int gate[2];
    if (s.child != 0 || ::pipe2(ready, O_CLOEXEC) != 0 || ::pipe2(gate, O_CLOEXEC) != 0) return;
    const int fd = m.fd(1);
    const ::pid_t child = ::fork();
    if (child == 0) {
        does(m.value(2), fd);
        char c = 'r';
        ::syscall(SYS_close, gate[1]);
        ::syscall(SYS_write, ready[1], &c, 1);
        if (m.value(3) != 0) ::syscall(SYS_read, gate[0], &c, 1);
        ::_exit(7);
    }
    char c = 0;
    ::syscall(SYS_read, ready[0], &c, 1);
    if (child > 0 && m.value(3) == 0) see_the_end_of(child);
    ::close(ready[0]);
    ::close(ready[1]);
    ::close(gate[0]);
    s.child = child;
    s.gate = gate[1];
    m.say(child > 0 ? "forked" : "no fork");
}

void lets_go(making& m) {
    slot& s = m.here.at(m.place(0));
    if (s.gate < 0) return;
    // Children forked after it may have a copy of the gate.
    ::syscall(SYS_write, s.gate, "g", 1);
    ::close(s.gate);
    s.gate = -1;
    if (s.child > 0) see_the_end_of(s.child);
}

void waits_for_child(making& m) {
    slot& s = m.here.at(m.place(0));
    if (s.child == 0 && m.value(1) == 0) return m.say("no child");
    int status = -1;
    const ::pid_t n = ::waitpid(m.value(1) == 0 ? s.child : -1, &status, m.number(2));
    if (n > 0)
        for (unsigned i = 0; i != slot_count; ++i)
            if (m.here.at(i).child == n) m.here.at(i).child = 0;
    m.tell(n > 0 ? 1 : n);
    if (n > 0) m.say(std::to_string(status));
}

void locks_record(making& m) {
    struct ::flock l = {};
    l.l_type = static_cast<short>(m.value(1));
    m.tell(::fcntl(m.fd(0), m.number(2), &l));
}

void runs_a_command(making& m) {
    std::FILE* const f = ::popen("echo weft", "r");
    if (f == nullptr) return m.say("no shell");
    std::string room(10, '\0');
    m.say_bytes(room, m.tell(::read(::fileno(f), room.data(), room.size())));
    m.tell(::pclose(f));
}

// Descriptors that libc opens and closes internally.
void opens_behind(making& m) {
    std::FILE* const f = ::fopen("/dev/zero", "r");
    ::DIR* const d = ::opendir("/proc/self");
    char c = 'x';
    m.tell(::read(::fileno(f), &c, 1));
    if (d != nullptr) ::closedir(d);
    m.tell(::fclose(f));
}
void reopens(making& m) {
    int two[2];
    if (::pipe(two) != 0) return;
    std::FILE* const f = ::freopen("/dev/null", "w", ::fdopen(two[1], "w"));
    m.tell(::write(::fileno(f), "x", 1));
    char c;
    m.tell(::read(two[0], &c, 1));
    ::fclose(f);
    ::close(two[0]);
}

}  // namespace

void add_processes(std::vector<call_spec>& all) {
    all.push_back({"fork",
                   3,
                   looks,
                   {a_new(child_process), a_slot(anything), one_of(deeds), one_of(lives)},
                   forks});
    all.push_back({"let_go", 2, looks, {a_slot(child_process)}, lets_go, true});
    all.push_back({"waitpid",
                   2,
                   takes,
                   {a_slot(child_process), one_of(which), one_of(options)},
                   waits_for_child,
                   true});
    all.push_back(
        {"lock", 3, looks, {a_slot(file), one_of(lock_types), one_of(lock_waits)}, locks_record});
    all.push_back({"flock", 2, looks, {a_slot(file), one_of(flock_ways)}, [](making& m) {
                       m.tell(::flock(m.fd(0), m.number(1)));
                   }});
    all.push_back({"popen", 1, looks, {}, runs_a_command, true});
    all.push_back({"fopen", 1, looks, {}, opens_behind});
    all.push_back({"freopen", 1, looks, {}, reopens});
}

}  // namespace weft::testing::fuzz
