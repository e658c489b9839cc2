// Futexes, guards of statics and pthread_once: fibers of one thread, and threads beside them, wait
// at the same word.

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <latch>
#include <limits>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/hook.hpp"
#include "weft/sched/pool.hpp"

namespace {

using namespace weft;

using word = std::atomic<unsigned>;

// libc declares `syscall` as one that throws nothing, so that a function with something to destroy
// around it could not be unwound by a kill.
long futex(word& w, int op, unsigned value, const timespec* t = nullptr, unsigned bits = ~0u) {
    static long (*volatile const plain_syscall)(long, ...) = HOOKED(syscall);
    return plain_syscall(SYS_futex, &w, op | FUTEX_PRIVATE_FLAG, value, t, nullptr, bits);
}
void wake_until(word& w, unsigned value) {
    while (futex(w, FUTEX_WAKE, value) == 0) HOOKED(usleep)(500);
}

POSIX_CASE(a_futex_answers_as_the_system_does) {
    word w{1};
    const timespec soon{0, 5'000'000};
    const timespec bad{0, 1'000'000'000};
    const timespec past{1, 0};
    t.told("another value", futex(w, FUTEX_WAIT, 2));
    t.took("a limit", std::chrono::milliseconds(5),
           [&] { t.told("until a limit", futex(w, FUTEX_WAIT, 1, &soon)); });
    t.told("no time", futex(w, FUTEX_WAIT, 1, &bad));
    t.told("no bits", futex(w, FUTEX_WAIT_BITSET, 1, nullptr, 0));
    t.told("a moment that has been", futex(w, FUTEX_WAIT_BITSET, 1, &past));
    t.told("the same by the clock of day",
           futex(w, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, &past));
    t.told("no word", HOOKED(syscall)(SYS_futex, nullptr, FUTEX_WAIT_PRIVATE, 1, nullptr));
    t.told("nobody to wake", futex(w, FUTEX_WAKE, 9));
    t.told("no bits to wake", futex(w, FUTEX_WAKE_BITSET, 9, nullptr, 0));
    t.told("no such command", futex(w, 77, 1));
    t.told("another call", HOOKED(syscall)(SYS_getpid) == ::getpid());
}

POSIX_CASE(a_futex_at_no_memory_is_refused) {
    const auto page = static_cast<std::size_t>(::getpagesize());
    auto* const room = static_cast<char*>(
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(room + page, page, PROT_NONE);
    auto& there = *reinterpret_cast<word*>(room + page - sizeof(word));
    auto& nowhere = *reinterpret_cast<word*>(room + page);
    const auto* const partly = reinterpret_cast<timespec*>(room + page - sizeof(long));
    const auto* const no_time = reinterpret_cast<timespec*>(room + page);
    t.told("wait", futex(nowhere, FUTEX_WAIT, 0));
    t.told("wait for bits", futex(nowhere, FUTEX_WAIT_BITSET, 0, nullptr, 4));
    t.told("wait, shared", HOOKED(syscall)(SYS_futex, &nowhere, FUTEX_WAIT, 0, nullptr));
    t.told("until no time", futex(there, FUTEX_WAIT, 0, no_time));
    t.told("until half a time", futex(there, FUTEX_WAIT_BITSET, 0, partly));
    t.told("another value, and no time", futex(there, FUTEX_WAIT, 1, no_time));
    t.told("neither", futex(nowhere, FUTEX_WAIT, 0, no_time));
    t.told("wake", futex(nowhere, FUTEX_WAKE, 1));
    ::munmap(room, 2 * page);
    const timespec soon{0, 1'000'000};
    t.told("gone", futex(there, FUTEX_WAIT, 0, &soon));
}

POSIX_CASE(a_futex_wakes_as_many_as_it_says) {
    word w{0};
    word up{0};
    for (int i = 0; i < 3; ++i)
        t.beside([&] {
            ++up;
            futex(w, FUTEX_WAIT, 0);
        });
    while (up != 3) HOOKED(usleep)(500);
    HOOKED(usleep)(20'000);
    t.told("two", futex(w, FUTEX_WAKE, 2));
    t.told("the rest", futex(w, FUTEX_WAKE, 9));
    t.join();
}

POSIX_CASE(a_futex_wakes_by_bits) {
    word w{0};
    t.beside([&] { futex(w, FUTEX_WAIT_BITSET, 0, nullptr, 6); });
    HOOKED(usleep)(20'000);
    t.told("other bits", futex(w, FUTEX_WAKE_BITSET, 1, nullptr, 9));
    t.told("one in common", futex(w, FUTEX_WAKE_BITSET, 1, nullptr, 12));
    t.join();
}

POSIX_CASE(who_would_be_moved_to_another_word_goes_on) {
    word w{0};
    word other{0};
    t.beside([&] { futex(w, FUTEX_WAIT, 0); });
    HOOKED(usleep)(20'000);
    t.told("one in all",
           HOOKED(syscall)(SYS_futex, &w, FUTEX_CMP_REQUEUE_PRIVATE, 1, 9L, &other, 0));
    t.join();
}

POSIX_CASE(once_is_done_by_one_and_waited_for_by_others) {
    static pthread_once_t once;
    static std::atomic<int> times;
    once = PTHREAD_ONCE_INIT;
    times = 0;
    const auto f = +[] {
        HOOKED(usleep)(5000);
        ++times;
    };
    for (int i = 0; i < 3; ++i)
        t.beside([&] { t.told("times", (HOOKED(pthread_once)(&once, f), times.load())); });
    t.join();
    t.told("again", HOOKED(pthread_once)(&once, f));
}

class futexes : public weft::testing::on_each_driver {};

TEST_P(futexes, wake_fibers_from_threads_and_threads_from_fibers) {
    run([&] {
        word w{0};
        std::thread ringer([&] { wake_until(w, 1); });
        EXPECT_EQ(futex(w, FUTEX_WAIT, 0), 0);
        std::thread sleeper([&] { EXPECT_EQ(futex(w, FUTEX_WAIT, 0), 0); });
        fiber parked([&] { EXPECT_EQ(futex(w, FUTEX_WAIT, 0), 0); });
        this_fiber::sleep_for(std::chrono::milliseconds(30));
        EXPECT_EQ(futex(w, FUTEX_WAKE, 9), 2);
        parked.join();
        weft::run_blocking([&] { sleeper.join(), ringer.join(); });
    });
}

TEST_P(futexes, without_the_private_flag_recheck_by_themselves) {
    run([&] {
        word w{0};
        EXPECT_EQ(HOOKED(syscall)(SYS_futex, &w, FUTEX_WAIT, 0, nullptr), 0);
    });
}

TEST_P(futexes, accept_the_longest_time_limit) {
    run([] {
        word w{0};
        long answer = -1;
        fiber f([&] {
            const timespec longest{std::numeric_limits<time_t>::max(), 999'999'999};
            answer = futex(w, FUTEX_WAIT, 0, &longest);
        });
        HOOKED(usleep)(2000);
        EXPECT_EQ(futex(w, FUTEX_WAKE, 1), 1);
        f.join();
        EXPECT_EQ(answer, 0);
    });
}

TEST_P(futexes, forget_a_killed_fiber) {
    word w{0};
    bool unwound = false;
    struct told {
        bool& it;
        ~told() { it = true; }
    };
    fiber f(
        [&] {
            told at_end{unwound};
            futex(w, FUTEX_WAIT, 0);
            ADD_FAILURE() << "nobody woke it";
        },
        {.on = loop()});
    static_cast<void>(loop().run_once(steady_now()));
    f.detach();
    end_loop();
    EXPECT_TRUE(unwound);
    EXPECT_EQ(futex(w, FUTEX_WAKE, 9), 0);
}

TEST_P(futexes, make_waits_of_std_types_suspend_the_fiber) {
    run([&] {
        std::atomic<int> flag{0};
        std::latch gate(2);
        std::counting_semaphore<8> units(0);
        std::barrier<> meeting(2);
        std::promise<int> promise;
        auto future = promise.get_future();
        fiber other([&] {
            this_fiber::sleep_for(std::chrono::milliseconds(5));
            flag = 1;
            flag.notify_all();
            gate.arrive_and_wait();
            this_fiber::sleep_for(std::chrono::milliseconds(5));
            units.release();
            meeting.arrive_and_wait();
            this_fiber::sleep_for(std::chrono::milliseconds(5));
            promise.set_value(7);
        });
        flag.wait(0);
        gate.arrive_and_wait();
        units.acquire();
        EXPECT_FALSE(units.try_acquire_for(std::chrono::milliseconds(2)));
        meeting.arrive_and_wait();
        EXPECT_EQ(future.wait_for(std::chrono::milliseconds(1)), std::future_status::timeout);
        EXPECT_EQ(future.get(), 7);
        other.join();
    });
}

TEST_P(futexes, let_a_static_initialiser_suspend_its_fiber) {
    // One for each driver: by a template.
    const auto check = [&]<int>() {
        static std::atomic<int> made{0};
        const auto get = [] {
            static const int value = [] {
                ::usleep(5000);
                return ++made;
            }();
            return value;
        };
        run([&] {
            std::vector<fiber> all;
            for (int i = 0; i < 4; ++i) all.emplace_back([&] { EXPECT_EQ(get(), 1); });
            for (fiber& f : all) f.join();
        });
    };
    switch (GetParam()) {
        case io_kind::epoll:
            return check.operator()<0>();
        case io_kind::io_uring:
            return check.operator()<1>();
        default:
            return check.operator()<2>();
    }
}

TEST_P(futexes, let_call_once_be_retried_after_an_exception) {
    run([&] {
        std::once_flag once;
        int tries = 0;
        std::atomic<int> failed{0};
        const auto attempt = [&] {
            try {
                std::call_once(once, [&] {
                    ::usleep(3000);
                    if (++tries == 1) throw std::runtime_error("not yet");
                });
            } catch (const std::runtime_error&) {
                ++failed;
            }
        };
        fiber first(attempt);
        fiber second(attempt);
        std::thread third(attempt);
        first.join();
        second.join();
        weft::run_blocking([&] { third.join(); });
        EXPECT_EQ(tries, 2);
        EXPECT_EQ(failed, 1);
    });
}

INSTANTIATE_ON_DRIVERS(futexes);

TEST(futexes_of_a_pool, wake_fibers_across_threads) {
    pool two(2);
    std::atomic<unsigned> turn{0};
    constexpr unsigned rounds = 300;
    std::vector<fiber> all;
    for (unsigned me = 0; me < 2; ++me)
        all.emplace_back(
            [&, me] {
                for (unsigned r = 0; r < rounds; ++r) {
                    for (unsigned t; (t = turn.load()) % 2 != me;) turn.wait(t);
                    ++turn;
                    turn.notify_all();
                }
            },
            fiber_options{.on = two});
    for (fiber& f : all) f.join();
    EXPECT_EQ(turn, 2 * rounds);
}

}  // namespace
