// Cases of locks of files, and how a stop ends a wait for one.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <fstream>
#include <string>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/fiber/fiber.hpp"

namespace {

using namespace weft::testing;
using std::chrono::milliseconds;

int unnamed_file() {
    char path[] = "/tmp/weft-lock-XXXXXX";
    const int fd = ::mkstemp(path);
    ::unlink(path);
    return fd;
}
struct flock record(short type, off_t at) {
    struct flock f{};
    f.l_type = type;
    f.l_whence = SEEK_SET;
    f.l_start = at;
    f.l_len = 1;
    return f;
}
int lock(int fd, int command, struct flock f) { return HOOKED(fcntl)(fd, command, &f); }

// Another process, which locks a record, reports that, and then does more; it ends with the object.
class locker {
public:
    template <class Then>
    locker(int fd, off_t at, Then then) {
        auto told = fd_pair::pipe();
        HOOKED(socketpair)(AF_UNIX, SOCK_STREAM, 0, ends_);
        child_ = ::fork();
        if (child_ == 0) {
            struct flock f = record(F_WRLCK, at);
            ::fcntl(fd, F_SETLK, &f);
            static_cast<void>(!::write(told.b, "x", 1));
            then(ends_[1]);
            ::_exit(0);
        }
        char c;
        HOOKED(read)(told.a, &c, 1);
    }
    locker(const locker&) = delete;
    ~locker() {
        ::kill(child_, SIGKILL);
        HOOKED(waitpid)(child_, nullptr, 0);
        for (const int fd : ends_) HOOKED(close)(fd);
    }
    // Until the child waits for a lock, as far as the system reports waiting processes.
    void wait_until_it_waits() const {
        const std::string own = " " + std::to_string(child_) + " ";
        for (int i = 0; i < 400; ++i, after_ms(5)) {
            std::ifstream all("/proc/locks");
            for (std::string line; std::getline(all, line);)
                if (line.find("->") != line.npos && line.find(own) != line.npos) return;
        }
    }
    void tell() { HOOKED(write)(ends_[0], "x", 1); }

private:
    int ends_[2] = {-1, -1};
    pid_t child_ = -1;
};
void until_told(int from) {
    char c;
    static_cast<void>(!::read(from, &c, 1));
}

POSIX_CASE(a_lock_that_would_close_a_circle_is_refused) {
    const one_fd file(unnamed_file());
    locker other(file.n, 1, [&](int told) {
        until_told(told);
        struct flock f = record(F_WRLCK, 0);
        ::fcntl(file.n, F_SETLKW, &f);
    });
    t.told("the first", lock(file.n, F_SETLKW, record(F_WRLCK, 0)));
    other.tell();
    other.wait_until_it_waits();
    t.told("the second", lock(file.n, F_SETLKW, record(F_WRLCK, 1)));
    t.told("not to wait", lock(file.n, F_SETLK, record(F_WRLCK, 1)));
}

POSIX_CASE(a_record_is_waited_for) {
    const one_fd file(unnamed_file());
    const auto wait_for = [&](const char* what, auto lock_it) {
        locker other(file.n, 5, until_told);
        t.beside([&] {
            after_ms(10);
            other.tell();  // its end unlocks
        });
        t.told(what, lock_it());
        t.join();
        t.told("unlock", lock(file.n, F_SETLK, record(F_UNLCK, 5)));
    };
    wait_for("fcntl", [&] { return lock(file.n, F_SETLKW, record(F_WRLCK, 5)); });
    wait_for("to read", [&] { return lock(file.n, F_SETLKW, record(F_RDLCK, 5)); });
    wait_for("of the open file", [&] {
        const int r = lock(file.n, F_OFD_SETLKW, record(F_WRLCK, 5));
        lock(file.n, F_OFD_SETLK, record(F_UNLCK, 5));
        return r;
    });
    ::lseek(file.n, 5, SEEK_SET);
    wait_for("lockf", [&] { return HOOKED(lockf)(file.n, F_LOCK, 1); });
    wait_for("lockf64", [&] { return HOOKED(lockf64)(file.n, F_LOCK, 0); });
    locker other(file.n, 5, until_told);
    t.told("to test", HOOKED(lockf)(file.n, F_TEST, 1));
    t.told("to try", HOOKED(lockf64)(file.n, F_TLOCK, 1));
    t.told("to unlock", HOOKED(lockf)(file.n, F_ULOCK, 1));
    t.told("a command that there is not", HOOKED(lockf)(file.n, 77, 1));
    t.told("of a number that is not open", HOOKED(lockf)(-1, F_LOCK, 1));
    const one_fd readable(HOOKED(open)("/dev/null", O_RDONLY));
    t.told("to write what is only read", lock(readable.n, F_SETLKW, record(F_WRLCK, 0)));
}

POSIX_CASE(a_file_is_waited_for) {
    char path[] = "/tmp/weft-lock-XXXXXX";
    const one_fd a(::mkstemp(path));
    const one_fd b(HOOKED(open)(path, O_RDWR));
    ::unlink(path);
    t.told("alone", HOOKED(flock)(a.n, LOCK_EX));
    t.told("again", HOOKED(flock)(a.n, LOCK_EX));
    t.told("not to wait", HOOKED(flock)(b.n, LOCK_SH | LOCK_NB));
    t.beside([&] {
        after_ms(10);
        HOOKED(flock)(a.n, LOCK_UN);
    });
    t.told("with others", HOOKED(flock)(b.n, LOCK_SH));
    t.join();
    t.told("beside it", HOOKED(flock)(a.n, LOCK_SH));
    t.told("a kind that there is not", HOOKED(flock)(a.n, 77));
    t.told("of a number that is not open", HOOKED(flock)(-1, LOCK_EX));
    t.told("unlocked", HOOKED(flock)(b.n, LOCK_UN));
    t.beside([&] {
        const one_fd own(HOOKED(dup)(b.n));
        t.told("the other's", HOOKED(flock)(own.n, LOCK_EX));
        HOOKED(flock)(own.n, LOCK_UN);
    });
    after_ms(10);
    HOOKED(flock)(a.n, LOCK_UN);
    t.join();
}

class locks : public on_each_driver {};

TEST_P(locks, stop_ends_the_wait_and_leaves_nothing_locked) {
    run([] {
        const one_fd file(unnamed_file());
        locker other(file.n, 0, until_told);
        int answer = 0;
        int why = 0;
        weft::fiber waiting([&] {
            answer = lock(file.n, F_SETLKW, record(F_WRLCK, 0));
            why = errno;
        });
        after_ms(20);
        const auto begun = std::chrono::steady_clock::now();
        waiting.request_stop();
        waiting.join();
        EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
        EXPECT_EQ(answer, -1);
        EXPECT_EQ(why, ECANCELED);
        other.tell();
        after_ms(20);
        const pid_t child = ::fork();
        if (child == 0) {
            struct flock f = record(F_WRLCK, 0);
            ::_exit(::fcntl(file.n, F_SETLK, &f) == 0 ? 0 : 1);
        }
        int status = -1;
        HOOKED(waitpid)(child, &status, 0);
        EXPECT_EQ(status, 0) << "the lock was taken after the call had failed";
    });
}

INSTANTIATE_ON_DRIVERS(locks);

}  // namespace
