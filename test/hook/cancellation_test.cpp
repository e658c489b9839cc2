// Cancellation of fibers: the same program, run by a thread or a fiber, writes the same.

#include "weft/hook/detail/cancellation.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "test/support/begun.hpp"
#include "test/support/gate.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/detail/opening.hpp"
#include "weft/hook/hook.hpp"
#include "weft/sched/pool.hpp"

extern "C" {
int cleanup_with_exceptions(int (*wait)(void*), void* of, void (*note)(void*));
int cleanup_with_no_exceptions(int (*wait)(void*), void* of, void (*note)(void*));
}

namespace {

using namespace weft;

using c_function = int (*)(int (*)(void*), void*, void (*)(void*));

POSIX_CASE(state_and_type_of_cancellation_are_the_caller_s) {
    int before = -1;
    t.told("state of none", HOOKED(pthread_setcancelstate)(7, &before));
    t.told("type of none", HOOKED(pthread_setcanceltype)(7, &before));
    t.told("disable", HOOKED(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &before));
    t.told("it was", before);
    t.told("again", HOOKED(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &before));
    t.told("it was", before);
    t.told("asynchronous", HOOKED(pthread_setcanceltype)(PTHREAD_CANCEL_ASYNCHRONOUS, &before));
    t.told("it was", before);
    t.told("deferred", HOOKED(pthread_setcanceltype)(PTHREAD_CANCEL_DEFERRED, &before));
    t.told("it was", before);
    t.told("enable", HOOKED(pthread_setcancelstate)(PTHREAD_CANCEL_ENABLE, nullptr));
    HOOKED(pthread_testcancel)();
}

POSIX_CASE(a_state_that_is_set_over_a_wait_is_no_other_s) {
    std::atomic<int> step{0};
    t.beside([&] {
        int before = -1;
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
        step = 1;
        while (step == 1) ::usleep(500);
        ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr);
        ::pthread_setcancelstate(before, nullptr);
        t.told("beside, it was", before);
        step = 3;
    });
    while (step == 0) ::usleep(500);
    int before = -1;
    ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
    t.told("type", before);
    ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    t.told("state", before);
    step = 2;
    while (step == 2) ::usleep(500);
    ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    t.told("state after it", before);
}

POSIX_CASE(a_thread_is_canceled_as_ever) {
    static int handlers;
    handlers = 0;
    const auto body = [](void* of) -> void* {
        if (WEFT_ASAN) return nullptr;  // it does not see how libc unwinds a thread
        reinterpret_cast<c_function>(of)(
            [](void*) { return ::pause(); }, nullptr,
            [](void* number) { handlers = 10 * handlers + *static_cast<int*>(number); });
        return nullptr;
    };
    for (const c_function f : {cleanup_with_exceptions, cleanup_with_no_exceptions}) {
        pthread_t beside;
        ::pthread_create(&beside, nullptr, body, reinterpret_cast<void*>(f));
        t.told("cancel", HOOKED(pthread_cancel)(beside));
        void* left = nullptr;
        ::pthread_join(beside, &left);
        t.told("canceled", left == PTHREAD_CANCELED);
        t.told("handlers", handlers);
        f([](void*) { return 0; }, nullptr, [](void*) {});
    }
    // By the second of the two.
    weft::testing::call_is_made(hook::call::__pthread_register_cancel);
    weft::testing::call_is_made(hook::call::__pthread_unregister_cancel);
    weft::testing::call_is_made(hook::call::__pthread_unwind_next);
}

#if WEFT_EXCEPTIONS

// One that is to be canceled: a thread, or a fiber of the running loop.
class agent {
public:
    virtual ~agent() = default;
    virtual int cancel() = 0;
    virtual bool join() = 0;  // whether it was canceled
    pthread_t handle() {
        while (!has_begun_) ::usleep(100);
        return handle_;
    }

protected:
    void body(const std::function<void()>& f) {
        handle_ = ::pthread_self();
        has_begun_ = true;
        f();
    }
    std::atomic<bool> has_begun_{false};
    pthread_t handle_{};
};

class thread_party final : public agent {
public:
    explicit thread_party(std::function<void()> f) : f_(std::move(f)) {
        ::pthread_create(
            &thread_, nullptr,
            [](void* of) -> void* {
                auto* const self = static_cast<thread_party*>(of);
                self->body(self->f_);
                return nullptr;
            },
            this);
    }
    int cancel() override { return ::pthread_cancel(handle()); }
    bool join() override {
        void* left = nullptr;
        ::pthread_join(thread_, &left);
        return left == PTHREAD_CANCELED;
    }

private:
    std::function<void()> f_;
    pthread_t thread_;
};

class fiber_party final : public agent {
public:
    explicit fiber_party(std::function<void()> f)
        : fiber_([this, run = std::move(f)] { body(run); }) {}
    int cancel() override { return ::pthread_cancel(handle()); }
    bool join() override { return fiber_.join().is_stopped(); }

private:
    fiber fiber_;
};

// What an agent writes down, in order.
struct notes {
    detail::spin_lock lock;
    std::string text;
    std::atomic<int> step{0};

    void add(std::string_view line) {
        const std::lock_guard held(lock);
        text.append(line).append("\n");
    }
    void add(std::string_view what, long value) {
        add(std::string(what) + " = " + std::to_string(value));
    }
    void reach(int n) { step = n; }
    void wait_for(int n) {
        while (step < n) ::usleep(100);
    }
};

struct noted_end {
    notes& n;
    std::string what;
    ~noted_end() { n.add("unwound " + what); }
};

// What it writes by itself comes before that.
void cancel_and_join(notes& n, agent& p, int times = 1) {
    long answers = 0;
    for (int i = 0; i < times; ++i) answers = answers * 1000 + p.cancel();
    const bool was_canceled = p.join();
    n.add("cancel", answers);
    n.add("canceled", was_canceled);
}

using start_party = std::unique_ptr<agent> (*)(std::function<void()>);
using program = void (*)(notes&, start_party);

std::string write_on_threads(program p) {
    notes n;
    p(n, [](std::function<void()> f) -> std::unique_ptr<agent> {
        return std::make_unique<thread_party>(std::move(f));
    });
    return n.text;
}
std::string write_in_fibers(program p) {
    notes n;
    p(n, [](std::function<void()> f) -> std::unique_ptr<agent> {
        return std::make_unique<fiber_party>(std::move(f));
    });
    return n.text;
}

class cancellation : public weft::testing::on_each_driver {
protected:
    void SetUp() override {
        hook::set_options({.pthread_self = true});
        on_each_driver::SetUp();
    }
    void TearDown() override { hook::set_options({}); }

    void expect_same(program p) {
        std::string of_fibers;
        run([&] { of_fibers = write_in_fibers(p); });
        EXPECT_NE(of_fibers, "");
        if (WEFT_ASAN) return;  // it does not see how libc unwinds a thread
        std::string of_threads;
        std::thread([&] { of_threads = write_on_threads(p); }).join();
        EXPECT_EQ(of_threads, of_fibers);
    }
};

// The waits that it ends: each by itself, on what is there for it.
struct waits_of_test {
    int ends[2] = {-1, -1};
    sem_t semaphore;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    int set = -1;
    waits_of_test() {
        ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
        ::sem_init(&semaphore, 0, 0);
        set = ::epoll_create1(0);
    }
    waits_of_test(const waits_of_test&) = delete;
    ~waits_of_test() {
        ::close(ends[0]);
        ::close(ends[1]);
        ::close(set);
        ::sem_destroy(&semaphore);
    }
};

struct a_wait {
    const char* name;
    void (*make)(waits_of_test&);
};
const a_wait all_waits_of_test[] = {
    {"read",
     [](waits_of_test& w) {
         char c;
         static_cast<void>(::read(w.ends[0], &c, 1));
     }},
    {"recv",
     [](waits_of_test& w) {
         char c;
         static_cast<void>(::recv(w.ends[0], &c, 1, 0));
     }},
    {"poll",
     [](waits_of_test& w) {
         pollfd p{w.ends[0], POLLIN, 0};
         ::poll(&p, 1, -1);
     }},
    {"poll of none", [](waits_of_test&) { ::poll(nullptr, 0, 8000); }},
    {"select",
     [](waits_of_test& w) {
         fd_set s;
         FD_ZERO(&s);
         FD_SET(w.ends[0], &s);
         ::select(w.ends[0] + 1, &s, nullptr, nullptr, nullptr);
     }},
    {"epoll_wait",
     [](waits_of_test& w) {
         epoll_event e;
         ::epoll_wait(w.set, &e, 1, -1);
     }},
    {"nanosleep",
     [](waits_of_test&) {
         const timespec t{8, 0};
         ::nanosleep(&t, nullptr);
     }},
    {"sem_wait", [](waits_of_test& w) { ::sem_wait(&w.semaphore); }},
    {"sigtimedwait",
     [](waits_of_test&) {
         sigset_t s;
         ::sigemptyset(&s);
         ::sigaddset(&s, SIGRTMIN + 5);
         ::sigwaitinfo(&s, nullptr);
     }},
    {"pause", [](waits_of_test&) { ::pause(); }},
};

TEST_P(cancellation, ends_the_wait_at_each_cancellation_point) {
    expect_same([](notes& n, start_party start) {
        for (const a_wait& one : all_waits_of_test) {
            waits_of_test w;
            n.step = 0;
            const auto p = start([&] {
                const noted_end at_end{n, one.name};
                n.reach(1);
                one.make(w);
                n.add("it came back");
            });
            n.wait_for(1);
            ::usleep(2000);  // so that it waits, mostly
            cancel_and_join(n, *p);
        }
    });
}

TEST_P(cancellation, ends_a_condition_wait_with_its_mutex_locked) {
    expect_same([](notes& n, start_party start) {
        waits_of_test w;
        const auto p = start([&] {
            ::pthread_mutex_lock(&w.mutex);
            struct unlocks {
                notes& n;
                waits_of_test& w;
                ~unlocks() {
                    n.add("try", ::pthread_mutex_trylock(&w.mutex));
                    n.add("unlock", ::pthread_mutex_unlock(&w.mutex));
                }
            } const at_end{n, w};
            n.reach(1);
            for (;;) ::pthread_cond_wait(&w.condition, &w.mutex);
        });
        n.wait_for(1);
        ::usleep(2000);
        cancel_and_join(n, *p);
        n.add("lock", ::pthread_mutex_lock(&w.mutex));
        n.add("unlock", ::pthread_mutex_unlock(&w.mutex));
    });
}

TEST_P(cancellation, acts_before_a_call_that_would_not_wait) {
    expect_same([](notes& n, start_party start) {
        struct one_call {
            const char* name;
            void (*make)(waits_of_test&);
        };
        const one_call all[] = {
            {"write", [](waits_of_test& w) { static_cast<void>(::write(w.ends[1], "x", 1)); }},
            {"send", [](waits_of_test& w) { ::send(w.ends[1], "x", 1, MSG_DONTWAIT); }},
            {"close", [](waits_of_test& w) { ::close(w.ends[1]); }},
            {"poll", [](waits_of_test&) { ::poll(nullptr, 0, 0); }},
            {"open", [](waits_of_test&) { ::open("/dev/null", O_RDONLY); }},
            {"testcancel", [](waits_of_test&) { ::pthread_testcancel(); }},
        };
        for (const one_call& c : all) {
            waits_of_test w;
            const auto p = start([&] {
                const noted_end at_end{n, c.name};
                n.add("cancel of itself", ::pthread_cancel(::pthread_self()));
                // None of these is a point.
                int before = -1;
                n.add("lock", ::pthread_mutex_lock(&w.mutex));
                n.add("unlock", ::pthread_mutex_unlock(&w.mutex));
                ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
                n.add("write while disabled", ::write(w.ends[1], "y", 1));
                ::pthread_setcancelstate(before, nullptr);
                n.add("before the call");
                c.make(w);
                n.add("it came back");
            });
            n.add("canceled", p->join());
            char seen[4];
            n.add("what is there", ::recv(w.ends[0], seen, 4, MSG_DONTWAIT));
            n.add("is open", ::fcntl(w.ends[1], F_GETFD));
        }
    });
}

TEST_P(cancellation, is_pending_while_disabled) {
    expect_same([](notes& n, start_party start) {
        waits_of_test w;
        const auto p = start([&] {
            const noted_end at_end{n, "the whole"};
            ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
            n.reach(1);
            char c;
            n.add("read", ::read(w.ends[0], &c, 1));
            int before = -1;
            ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
            n.add("it was", before);
            ::usleep(1);
            n.add("it came back");
        });
        n.wait_for(1);
        ::usleep(2000);
        const int answer = p->cancel();
        ::usleep(2000);
        EXPECT_EQ(::write(w.ends[1], "x", 1), 1);
        n.add("canceled", p->join());
        n.add("cancel", answer);
    });
}

TEST_P(cancellation, allows_waits_in_destructors_once_it_acts) {
    expect_same([](notes& n, start_party start) {
        waits_of_test w;
        const auto p = start([&] {
            struct says_goodbye {
                notes& n;
                waits_of_test& w;
                ~says_goodbye() {
                    n.add("usleep", ::usleep(1000));
                    n.add("write", ::write(w.ends[1], "x", 1));
                    int before = -1;
                    ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
                    n.add("write again", ::write(w.ends[1], "x", 1));
                }
            } const at_end{n, w};
            n.reach(1);
            ::pause();
        });
        n.wait_for(1);
        ::usleep(1000);
        cancel_and_join(n, *p, 2);
        char seen[4];
        n.add("what is there", ::recv(w.ends[0], seen, 4, MSG_DONTWAIT));
    });
}

notes* notes_of_handlers;
void note_handler_of_c(void* number) {
    notes_of_handlers->add("handler", *static_cast<int*>(number));
}

TEST_P(cancellation, runs_c_handlers_with_and_without_exceptions) {
    expect_same([](notes& n, start_party start) {
        notes_of_handlers = &n;
        for (const c_function f : {cleanup_with_exceptions, cleanup_with_no_exceptions}) {
            n.step = 0;
            const auto p = start([&] {
                const noted_end outermost{n, "outside of it"};
                struct both {
                    notes& n;
                    c_function f;
                } of{n, f};
                // C within C++ within C.
                f(
                    [](void* to) {
                        auto& mine = *static_cast<both*>(to);
                        const noted_end between{mine.n, "between"};
                        return mine.f(
                            [](void* too) {
                                auto& same = *static_cast<both*>(too);
                                const noted_end innermost{same.n, "inside"};
                                same.n.reach(1);
                                return ::usleep(8'000'000);
                            },
                            to, note_handler_of_c);
                    },
                    &of, note_handler_of_c);
            });
            n.wait_for(1);
            ::usleep(1000);
            p->cancel();
            n.add("canceled", p->join());
        }
    });
}

TEST_P(cancellation, runs_c_handlers_on_pthread_exit) {
    expect_same([](notes& n, start_party start) {
        notes_of_handlers = &n;
        for (const c_function f : {cleanup_with_exceptions, cleanup_with_no_exceptions}) {
            const auto p = start([&] {
                const noted_end outermost{n, "outside of it"};
                f([](void*) -> int { ::pthread_exit(PTHREAD_CANCELED); }, nullptr,
                  note_handler_of_c);
            });
            n.add("ended", p->join());
        }
    });
}

TEST_P(cancellation, runs_own_handlers_amid_pushes_of_other_fibers) {
    if (WEFT_TSAN) GTEST_SKIP() << "it loses count of a thread that jumps out of a call";
    expect_same([](notes& n, start_party start) {
        notes_of_handlers = &n;
        // The first pops while the second is in it still, and the second is canceled after that.
        const auto body = [&n](int from) {
            struct both {
                notes& n;
                int from;
            } of{n, from};
            cleanup_with_no_exceptions(
                [](void* to) {
                    auto& mine = *static_cast<both*>(to);
                    mine.n.reach(mine.from);
                    if (mine.from == 1)
                        mine.n.wait_for(3);
                    else
                        ::usleep(8'000'000);
                    return 0;
                },
                &of, note_handler_of_c);
        };
        const auto first = start([&] { body(1); });
        n.wait_for(1);
        const auto second = start([&] { body(2); });
        n.wait_for(2);
        n.reach(3);
        n.add("canceled", first->join());
        second->cancel();
        n.add("canceled", second->join());
    });
}

TEST_P(cancellation, runs_the_same_handlers_as_an_unwinding_stop) {
    run([&] {
        for (const c_function f : {cleanup_with_exceptions, cleanup_with_no_exceptions}) {
            notes n;
            notes_of_handlers = &n;
            fiber stopped([&] {
                const hook::stop_answer_scope unwinds(hook::stop_answer::unwind);
                const noted_end outermost{n, "outside of it"};
                f([](void*) { return ::usleep(8'000'000); }, nullptr, note_handler_of_c);
                n.add("it came back");
            });
            this_fiber::yield();
            stopped.request_stop();
            EXPECT_TRUE(stopped.join().is_stopped());
            EXPECT_EQ(n.text, "handler = 1\nhandler = 2\nunwound outside of it\n");
        }
    });
}

TEST_P(cancellation, of_a_done_fiber_is_refused) {
    run([&] {
        pthread_t handle{};
        fiber f([&] { handle = ::pthread_self(); });
        f.join();
        EXPECT_EQ(::pthread_cancel(handle), ESRCH);
        EXPECT_EQ(::pthread_cancel(handle + 2'000'000), ESRCH);
    });
}

// It may have come in the midst of malloc. The next call outside of a handler has the fiber known.
TEST_P(cancellation, allocates_nothing_for_pthread_self_in_a_handler) {
    run([&] {
        static pthread_t told;
        struct sigaction before;
        struct sigaction asks{};
        asks.sa_handler = [](int) { told = ::pthread_self(); };
        ::sigaction(SIGUSR2, &asks, &before);
        fiber f([&] {
            ::raise(SIGUSR2);
            EXPECT_EQ(::pthread_cancel(told), ESRCH);
            EXPECT_EQ(::pthread_self(), told);
            EXPECT_EQ(::pthread_cancel(told), 0);
            ::usleep(1);
            ADD_FAILURE() << "it came back";
        });
        EXPECT_TRUE(f.join().is_stopped());
        ::sigaction(SIGUSR2, &before, nullptr);
    });
}

TEST_P(cancellation, reaches_a_fiber_that_migrates_in_a_pool) {
    pool two(2);
    for (int i = 0; i < 50; ++i) {
        std::atomic<pthread_t> handle{0};
        fiber f(
            [&] {
                handle = ::pthread_self();
                for (;;) ::usleep(50);
            },
            fiber_options{.on = two, .migratable = true});
        while (handle == 0) std::this_thread::yield();
        ::usleep(static_cast<unsigned>(10 * i));
        EXPECT_EQ(::pthread_cancel(handle), 0);
        EXPECT_TRUE(f.join().is_stopped());
    }
}

TEST_P(cancellation, can_be_requested_by_a_thread) {
    run([&] {
        std::atomic<pthread_t> handle{0};
        bool came_back = false;
        fiber f([&] {
            handle = ::pthread_self();
            ::usleep(8'000'000);
            came_back = true;
        });
        std::thread canceler([&] {
            while (handle == 0) std::this_thread::yield();
            EXPECT_EQ(::pthread_cancel(handle), 0);
        });
        EXPECT_TRUE(f.join().is_stopped());
        canceler.join();
        EXPECT_FALSE(came_back);
    });
}

// The request comes when the waiter was woken, and before the waiter has looked whether its event
// is still there. Another writer, which looks first, finds the socket full.
TEST_P(cancellation, ends_a_wait_whose_event_another_fiber_takes) {
    run([&] {
        waits_of_test full;
        waits_of_test other;
        std::string all(1 << 20, 'x');
        while (::send(full.ends[0], all.data(), all.size(), MSG_DONTWAIT) > 0) {
        }
        const auto write_more = [&] { return ::write(full.ends[0], "y", 1); };
        fiber first([&] { EXPECT_EQ(write_more(), 1); });
        pthread_t handle = 0;
        bool came_back = false;
        fiber f([&] {
            handle = ::pthread_self();
            static_cast<void>(write_more());
            came_back = true;
        });
        ::usleep(2000);
        EXPECT_EQ(::pthread_cancel(handle), 0);
        ::shutdown(other.ends[0], SHUT_RD);  // every writer looks again
        ::usleep(2000);
        EXPECT_TRUE(f.done());
        while (::recv(full.ends[1], all.data(), all.size(), MSG_DONTWAIT) > 0) ::usleep(100);
        EXPECT_TRUE(f.join().is_stopped());
        EXPECT_FALSE(came_back);
        first.join();
    });
}

// A wait for a descriptor that was waited for before is two, if it lasts: the request comes when
// the first has ended.
TEST_P(cancellation, ends_a_wait_that_has_just_begun_to_last) {
    run([&] {
        waits_of_test w;
        pthread_t handle = 0;
        bool came_back = false;
        fiber f([&] {
            char c;
            EXPECT_EQ(::read(w.ends[0], &c, 1), 1);
            handle = ::pthread_self();
            static_cast<void>(::read(w.ends[0], &c, 1));
            came_back = true;
        });
        ::usleep(1000);
        EXPECT_EQ(::write(w.ends[1], "x", 1), 1);
        while (handle == 0) this_fiber::yield();
        this_fiber::yield();
        std::atomic<bool> over{false};
        std::thread canceler([&] {
            EXPECT_EQ(::pthread_cancel(handle), 0);
            const auto began = std::chrono::steady_clock::now();
            while (std::chrono::steady_clock::now() - began < 2 * hook::trusted_wait) {
            }
            over = true;
        });
        while (!over) {  // this thread runs no other fiber meanwhile
        }
        canceler.join();
        ::usleep(2000);
        EXPECT_TRUE(f.done());
        static_cast<void>(::write(w.ends[1], "x", 1));
        EXPECT_TRUE(f.join().is_stopped());
        EXPECT_FALSE(came_back);
    });
}

// The coroutine's wait is inside the fiber's, and is the innermost.
TEST_P(cancellation, ends_the_wait_of_the_fiber_and_not_of_a_coroutine_in_it) {
    run([&] {
        weft::testing::gate first;
        weft::testing::gate second;
        bool passed = false;
        bool came_back = false;
        pthread_t handle = 0;
        fiber f([&] {
            handle = ::pthread_self();
            const weft::testing::begun waits = weft::testing::pass_both(first, second, &passed);
            struct lets_pass {
                weft::testing::gate& last;
                ~lets_pass() {
                    EXPECT_TRUE(last.let_one_pass());
                    this_fiber::yield();
                }
            } const at_end{second};
            ::usleep(2'000'000);
            came_back = true;
        });
        ::usleep(1000);
        ASSERT_TRUE(first.let_one_pass());
        ::usleep(1000);
        EXPECT_EQ(::pthread_cancel(handle), 0);
        EXPECT_TRUE(f.join().is_stopped());
        EXPECT_FALSE(came_back);
        EXPECT_TRUE(passed);
    });
}

TEST_P(cancellation, does_not_unwind_a_noexcept_function) {
    run([&] {
        int step = 0;
        fiber f([&] {
            ::pthread_cancel(::pthread_self());
            [&]() noexcept {
                ::usleep(1000);
                step = 1;
            }();
            ::usleep(1000);
            step = 2;
        });
        EXPECT_TRUE(f.join().is_stopped());
        EXPECT_EQ(step, 1);
    });
}

INSTANTIATE_ON_DRIVERS(cancellation);

#endif

}  // namespace
