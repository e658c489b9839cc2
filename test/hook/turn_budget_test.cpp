#include "weft/hook/detail/turn_budget.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <mutex>
#include <string>

#include "test/io/drivers.hpp"
#include "test/support/begun.hpp"
#include "test/support/gate.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/io/detail/descriptor.hpp"

namespace {

using namespace weft;
using namespace std::chrono_literals;

struct ends {
    int of[2];
    explicit ends(int flags = 0) {
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | flags, 0, of), 0);
    }
    ~ends() {
        ::close(of[0]);
        ::close(of[1]);
    }
};

class a_fiber_that_never_waits : public weft::testing::on_each_driver {
protected:
    // Whether a fiber that makes the call again and again sees another fiber's progress, within far
    // more calls than a budget has.
    bool sees_another(const std::function<void()>& call) {
        bool seen = false;
        run([&] {
            nursery n;
            bool is_over = false;
            n.spawn([&] {
                for (int i = 0; i < 20'000 && !is_over; ++i) call();
                seen = is_over;
            });
            n.spawn([&] { is_over = true; });
            n.join();
        });
        return seen;
    }

    // How many turns another fiber has meanwhile.
    int turns_of_another(const std::function<void()>& f) {
        int during = 0;
        run([&] {
            nursery n;
            int turns = 0;
            bool is_over = false;
            n.spawn([&] {
                ::usleep(1);  // a new budget
                const int before = turns;
                f();
                during = turns - before;
                is_over = true;
            });
            n.spawn([&] {
                while (!is_over) {
                    ++turns;
                    this_fiber::yield();
                }
            });
            n.join();
        });
        return during;
    }
};

TEST_P(a_fiber_that_never_waits, lets_others_run_between_calls_that_never_block) {
    const ends e;
    EXPECT_TRUE(sees_another([&] {
        char c = 0;
        EXPECT_EQ(::write(e.of[0], &c, 1), 1);
        EXPECT_EQ(::read(e.of[1], &c, 1), 1);
    }));
    const int file = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    char some[16];
    EXPECT_TRUE(sees_another([&] { EXPECT_EQ(::read(file, some, sizeof some), 16); }));
    ::close(file);
}

TEST_P(a_fiber_that_never_waits, lets_others_run_when_its_calls_find_nothing) {
    const ends never_waits(SOCK_NONBLOCK);
    const ends e;
    char c;
    EXPECT_TRUE(sees_another([&] { EXPECT_EQ(::read(never_waits.of[0], &c, 1), -1); }));
    EXPECT_TRUE(sees_another([&] { EXPECT_EQ(::recv(e.of[0], &c, 1, MSG_DONTWAIT), -1); }));
    EXPECT_TRUE(sees_another([&] {
        ::pollfd p = {e.of[0], POLLIN, 0};
        EXPECT_EQ(::poll(&p, 1, 0), 0);
    }));
    sigset_t none;
    ::sigemptyset(&none);
    const timespec at_once{};
    EXPECT_TRUE(sees_another([&] { EXPECT_EQ(::sigtimedwait(&none, nullptr, &at_once), -1); }));
}

TEST_P(a_fiber_that_never_waits, lets_others_run_while_a_coroutine_waits_in_it) {
    run([&] {
        weft::testing::gate g;
        const weft::testing::begun waits = [](weft::testing::gate& of) -> weft::testing::begun {
            co_await of.async_pass();
        }(g);
        bool done = false;
        fiber other([&] { done = true; });
        for (int i = 0; i != 100'000 && !done; ++i) ::sched_yield();
        EXPECT_TRUE(done);
        EXPECT_TRUE(g.let_one_pass());
        other.join();
    });
}

TEST_P(a_fiber_that_never_waits, lets_others_run_between_locks) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    EXPECT_TRUE(sees_another([&] {
        EXPECT_EQ(::pthread_mutex_lock(&m), 0);
        EXPECT_EQ(::pthread_mutex_trylock(&m), EBUSY);
        EXPECT_EQ(::pthread_mutex_unlock(&m), 0);
    }));
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    EXPECT_TRUE(sees_another([&] {
        EXPECT_EQ(::pthread_rwlock_rdlock(&l), 0);
        EXPECT_EQ(::pthread_rwlock_unlock(&l), 0);
    }));
    EXPECT_TRUE(sees_another([&] {
        EXPECT_EQ(::pthread_rwlock_tryrdlock(&l), 0);
        EXPECT_EQ(::pthread_rwlock_trywrlock(&l), EBUSY);
        EXPECT_EQ(::pthread_rwlock_unlock(&l), 0);
    }));
    sem_t s;
    ::sem_init(&s, 0, 0);
    EXPECT_TRUE(sees_another([&] { EXPECT_EQ(::sem_trywait(&s), -1); }));
    EXPECT_TRUE(sees_another([&] {
        EXPECT_EQ(::sem_post(&s), 0);
        EXPECT_EQ(::sem_wait(&s), 0);
    }));
    EXPECT_TRUE(sees_another([] { ::pthread_testcancel(); }));
    char name[] = "/tmp/weft_budget_XXXXXX";
    const int file = ::mkstemp(name);
    ::unlink(name);
    EXPECT_TRUE(sees_another([&] { EXPECT_EQ(::flock(file, LOCK_EX | LOCK_NB), 0); }));
    EXPECT_TRUE(sees_another([&] {
        struct ::flock record{};
        record.l_type = F_WRLCK;
        EXPECT_EQ(::fcntl(file, F_SETLK, &record), 0);
    }));
    ::close(file);
}

TEST_P(a_fiber_that_never_waits, lets_others_run_when_it_polls_for_a_child) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    EXPECT_TRUE(sees_another([&] { EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0); }));
    ::kill(child, SIGKILL);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_P(a_fiber_that_never_waits, keeps_its_turn_until_its_budget_is_spent) {
    std::mutex m;
    EXPECT_EQ(turns_of_another([&] {
                  for (int i = 0; i < hook::turn_budget; ++i) const std::lock_guard held(m);
              }),
              0);
}

// They may be made in the midst of something.
TEST_P(a_fiber_that_never_waits, keeps_its_turn_in_calls_on_fds_owned_by_weft) {
    EXPECT_EQ(turns_of_another([] {
                  const ends e(SOCK_NONBLOCK);
                  std::error_code error;
                  const detail::descriptor_ref own =
                      detail::descriptor_ref::adopt(e.of[0], 0, error);
                  char c = 0;
                  for (int i = 0; i < 2000; ++i) EXPECT_EQ(::read(e.of[0], &c, 1), -1);
                  for (int i = 0; i < 2000; ++i) {
                      EXPECT_EQ(::write(e.of[1], &c, 1), 1);
                      EXPECT_EQ(::read(e.of[0], &c, 1), 1);
                  }
                  own.entry().end(own.generation());
              }),
              0);
}

INSTANTIATE_ON_DRIVERS(a_fiber_that_never_waits);

}  // namespace
