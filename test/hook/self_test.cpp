// pthread_self() of a fiber, and the calls that take its result.

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <cerrno>
#include <set>
#include <thread>

#include "test/hook/suite.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"

namespace {

using namespace weft;

POSIX_CASE(own_handle_is_taken_by_what_asks_of_a_thread) {
    const pthread_t self = HOOKED(pthread_self)();
    t.told("is itself", ::pthread_equal(self, ::pthread_self()) != 0);
    t.told("kill with nothing", HOOKED(pthread_kill)(self, 0));
    ::signal(SIGRTMIN + 3, SIG_IGN);
    t.told("sigqueue", HOOKED(pthread_sigqueue)(self, SIGRTMIN + 3, sigval{}));
    char name[16] = {};
    t.told("set a name", HOOKED(pthread_setname_np)(self, "own"));
    t.told("get it", HOOKED(pthread_getname_np)(self, name, sizeof name));
    t.said("the name", name);
    t.told("a name too long", HOOKED(pthread_setname_np)(self, "longer than it may be"));
    clockid_t clock;
    t.told("cpu clock", HOOKED(pthread_getcpuclockid)(self, &clock));
    int policy = -1;
    sched_param param{};
    t.told("get scheduling", HOOKED(pthread_getschedparam)(self, &policy, &param));
    t.told("set it", HOOKED(pthread_setschedparam)(self, policy, &param));
    t.told("set a priority that there is not", HOOKED(pthread_setschedprio)(self, 99));
    cpu_set_t cpus;
    t.told("get processors", HOOKED(pthread_getaffinity_np)(self, sizeof cpus, &cpus));
    t.told("set them", HOOKED(pthread_setaffinity_np)(self, sizeof cpus, &cpus));
}

POSIX_CASE(a_thread_is_asked_whether_it_has_ended) {
    pthread_t thread;
    static int value;
    ::pthread_create(
        &thread, nullptr,
        [](void* p) -> void* {
            ::usleep(2000);
            return p;
        },
        &value);
    void* left = nullptr;
    int r;
    while ((r = HOOKED(pthread_tryjoin_np)(thread, &left)) == EBUSY) {
    }
    t.told("join", r);
    t.told("its value", left == &value);
}

POSIX_CASE(attributes_have_the_stack_that_the_caller_is_on) {
    pthread_attr_t attributes;
    t.told("attributes", HOOKED(pthread_getattr_np)(HOOKED(pthread_self)(), &attributes));
    void* lowest = nullptr;
    size_t bytes = 0;
    ::pthread_attr_getstack(&attributes, &lowest, &bytes);
    char* const here = static_cast<char*>(__builtin_frame_address(0));
    const bool is_in =
        here >= static_cast<char*>(lowest) && here < static_cast<char*>(lowest) + bytes;
    // Without the option a fiber gets its thread's.
    t.told("is in it", is_in || !hook::get_options().pthread_self ? 1 : 0);
    ::pthread_attr_destroy(&attributes);
}

POSIX_CASE(a_thread_that_is_detached_is_not_joined) {
    pthread_t beside;
    ::pthread_create(&beside, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
    t.told("detach", HOOKED(pthread_detach)(beside));
}

class pthread_self_of_fibers : public ::testing::Test {
protected:
    void SetUp() override { hook::set_options({.pthread_self = true}); }
    void TearDown() override { hook::set_options({}); }
};

TEST_F(pthread_self_of_fibers, differs_per_fiber_and_is_stable_across_waits) {
    std::set<pthread_t> seen = {::pthread_self()};
    run([&] {
        for (int i = 0; i < 10; ++i) {
            fiber f([&] {
                const pthread_t self = ::pthread_self();
                seen.insert(self);
                for (int k = 0; k < 3; ++k) {
                    this_fiber::yield();
                    EXPECT_EQ(::pthread_self(), self);
                }
                const hook::disabled_scope off;
                EXPECT_EQ(::pthread_self(), self);
            });
            f.join();
        }
    });
    EXPECT_EQ(seen.size(), 11u);
}

TEST_F(pthread_self_of_fibers, is_no_thread_if_it_is_another_fibers) {
    run([] {
        pthread_t other = 0;
        fiber f([&] { other = ::pthread_self(); });
        f.join();
        EXPECT_EQ(::pthread_kill(other, 0), ESRCH);
        char name[16];
        EXPECT_EQ(::pthread_getname_np(other, name, sizeof name), ESRCH);
        EXPECT_EQ(::pthread_detach(other), EINVAL);
        void* left;
        EXPECT_EQ(::pthread_tryjoin_np(other, &left), ESRCH);
        EXPECT_EQ(::pthread_tryjoin_np(::pthread_self(), &left), EBUSY);
        std::thread([&] { EXPECT_EQ(::pthread_kill(other, 0), ESRCH); }).join();
    });
}

TEST_F(pthread_self_of_fibers, reports_the_fibers_stack) {
    run([] {
        fiber f([] {
            pthread_attr_t attributes;
            ASSERT_EQ(::pthread_getattr_np(::pthread_self(), &attributes), 0);
            void* lowest = nullptr;
            size_t bytes = 0;
            ::pthread_attr_getstack(&attributes, &lowest, &bytes);
            char* const here = static_cast<char*>(__builtin_frame_address(0));
            EXPECT_GE(here, static_cast<char*>(lowest));
            EXPECT_LT(here, static_cast<char*>(lowest) + bytes);
            ::pthread_attr_destroy(&attributes);
        });
        f.join();
    });
}

TEST(pthread_self_of_threads, is_per_fiber_only_if_enabled) {
    const pthread_t thread = ::pthread_self();
    run([&] { EXPECT_EQ(::pthread_self(), thread); });
}

}  // namespace
