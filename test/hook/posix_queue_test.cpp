// Cases of queues of messages and of sets of semaphores between processes.

#include <gtest/gtest.h>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/hook/hook.hpp"

extern "C" mqd_t __mq_open_2(const char*, int);

namespace {

using namespace weft;
using namespace weft::testing;
using namespace std::chrono_literals;

// A queue of two messages of eight bytes; its name is taken away at once.
struct posix_queue {
    mqd_t id;
    explicit posix_queue(int flags = 0) {
        static std::atomic<int> made{0};
        const std::string name =
            "/weft_test_" + std::to_string(::getpid()) + "_" + std::to_string(++made);
        mq_attr a{};
        a.mq_maxmsg = 2;
        a.mq_msgsize = 8;
        id = HOOKED(mq_open)(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600, &a);
        const mqd_t again = HOOKED(__mq_open_2)(name.c_str(), O_RDWR | O_CLOEXEC);
        HOOKED(mq_close)(again);
        ::mq_unlink(name.c_str());
    }
    posix_queue(const posix_queue&) = delete;
    ~posix_queue() { HOOKED(mq_close)(id); }
};

timespec moment_in(std::chrono::milliseconds d) {
    timespec t;
    ::clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += d.count() * 1'000'000;
    return {t.tv_sec + t.tv_nsec / 1'000'000'000, t.tv_nsec % 1'000'000'000};
}

POSIX_CASE(a_queue_is_waited_for) {
    const posix_queue q;
    if (q.id < 0) return t.said("queues", "there are none");
    t.beside([&] {
        after_ms(5);
        HOOKED(mq_send)(q.id, "a", 1, 3);
        after_ms(5);
        HOOKED(mq_send)(q.id, "bc", 2, 4);
    });
    char room[8] = "";
    unsigned priority = 0;
    t.told("receive", HOOKED(mq_receive)(q.id, room, sizeof room, &priority));
    t.told("priority", priority);
    const timespec later = moment_in(5000ms);
    t.told("receive", HOOKED(mq_timedreceive)(q.id, room, sizeof room, &priority, &later));
    t.told("priority", priority);
    t.said("data", std::string(room, 2));
    t.join();
    const timespec soon = moment_in(20ms);
    t.took("in vain", 15ms, [&] {
        t.told("nothing", HOOKED(mq_timedreceive)(q.id, room, sizeof room, nullptr, &soon));
    });
    t.told("send", HOOKED(mq_send)(q.id, "1", 1, 0));
    t.told("send", HOOKED(mq_timedsend)(q.id, "2", 1, 0, &soon));
    t.told("no room", HOOKED(mq_timedsend)(q.id, "3", 1, 0, &soon));
    t.beside([&] {
        after_ms(5);
        char other[8];
        HOOKED(mq_receive)(q.id, other, sizeof other, nullptr);
    });
    t.told("room", HOOKED(mq_send)(q.id, "4", 1, 9));
    t.told("first", HOOKED(mq_receive)(q.id, room, sizeof room, nullptr));
    t.said("data", std::string(room, 1));
    t.join();
}

POSIX_CASE(what_a_queue_refuses) {
    const posix_queue q(O_NONBLOCK);
    if (q.id < 0) return t.said("queues", "there are none");
    char room[8] = "";
    const timespec bad = {0, 1'000'000'000};
    const timespec past = {1, 0};
    t.told("not to wait", HOOKED(mq_receive)(q.id, room, sizeof room, nullptr));
    t.told("not to wait", HOOKED(mq_timedreceive)(q.id, room, sizeof room, nullptr, &past));
    t.told("bad", HOOKED(mq_timedreceive)(q.id, room, sizeof room, nullptr, &bad));
    t.told("too little room", HOOKED(mq_receive)(q.id, room, 4, nullptr));
    t.told("too long", HOOKED(mq_send)(q.id, "123456789", 9, 0));
    t.told("such a priority", HOOKED(mq_send)(q.id, "1", 1, 1u << 20));
    t.told("send", HOOKED(mq_send)(q.id, "1", 1, 0));
    t.told("bad with room", HOOKED(mq_timedsend)(q.id, "2", 1, 0, &bad));
    t.told("send", HOOKED(mq_send)(q.id, "2", 1, 0));
    t.told("full", HOOKED(mq_send)(q.id, "3", 1, 0));
    mq_attr blocking{};
    ::mq_setattr(q.id, &blocking, nullptr);
    t.told("in the past", HOOKED(mq_timedsend)(q.id, "3", 1, 0, &past));
    t.told("no queue", HOOKED(mq_receive)(12'345, room, sizeof room, nullptr));
}

struct letter {
    long type;
    char text[8];
};

POSIX_CASE(a_queue_of_system_v) {
    const int q = ::msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
    if (q < 0) return t.said("queues", "there are none");
    letter in{};
    t.told("nothing", HOOKED(msgrcv)(q, &in, sizeof in.text, 0, IPC_NOWAIT));
    t.beside([=] {
        after_ms(5);
        const letter other = {3, "other"};
        const letter mine = {2, "mine"};
        HOOKED(msgsnd)(q, &other, sizeof other.text, 0);
        after_ms(5);
        HOOKED(msgsnd)(q, &mine, sizeof mine.text, 0);
    });
    t.told("of a type", HOOKED(msgrcv)(q, &in, sizeof in.text, 2, 0));
    t.told("type", in.type);
    t.said("text", in.text);
    t.told("too long", HOOKED(msgrcv)(q, &in, 3, 0, 0));
    t.told("cut", HOOKED(msgrcv)(q, &in, 3, 0, MSG_NOERROR));
    t.join();
    const letter bad = {0, "bad"};
    t.told("no type", HOOKED(msgsnd)(q, &bad, sizeof bad.text, 0));
    msqid_ds about{};
    ::msgctl(q, IPC_STAT, &about);
    about.msg_qbytes = 8;
    t.told("set", ::msgctl(q, IPC_SET, &about));
    const letter some = {1, "some"};
    t.told("send", HOOKED(msgsnd)(q, &some, sizeof some.text, IPC_NOWAIT));
    t.told("full", HOOKED(msgsnd)(q, &some, sizeof some.text, IPC_NOWAIT));
    t.beside([=] {
        after_ms(5);
        letter taken;
        HOOKED(msgrcv)(q, &taken, sizeof taken.text, 0, 0);
    });
    t.told("room", HOOKED(msgsnd)(q, &some, sizeof some.text, 0));
    t.join();
    t.told("receive", HOOKED(msgrcv)(q, &in, sizeof in.text, 0, 0));
    t.beside([=] {
        after_ms(10);
        ::msgctl(q, IPC_RMID, nullptr);
    });
    t.told("removed", HOOKED(msgrcv)(q, &in, sizeof in.text, 0, 0));
    t.join();
    t.told("is no more", HOOKED(msgrcv)(q, &in, sizeof in.text, 0, 0));
}

POSIX_CASE(semaphores_of_system_v) {
    const int s = ::semget(IPC_PRIVATE, 2, 0600 | IPC_CREAT);
    if (s < 0) return t.said("semaphores", "there are none");
    sembuf up = {0, 1, 0};
    sembuf down = {0, -1, 0};
    sembuf hasty = {0, -1, IPC_NOWAIT};
    sembuf zero = {0, 0, 0};
    sembuf mixed[] = {{1, 1, 0}, {0, -1, IPC_NOWAIT}};
    sembuf both[] = {{1, 1, IPC_NOWAIT}, {0, -1, 0}};
    t.told("hasty", HOOKED(semop)(s, &hasty, 1));
    t.told("the one that cannot be done does not wait", HOOKED(semop)(s, mixed, 2));
    t.told("none of it is done", ::semctl(s, 1, GETVAL));
    t.beside([&] {
        after_ms(5);
        HOOKED(semop)(s, &up, 1);
    });
    t.told("it waits", HOOKED(semop)(s, both, 2));
    t.told("all of it is done", ::semctl(s, 1, GETVAL));
    t.join();
    t.told("up", HOOKED(semop)(s, &up, 1));
    t.beside([&] {
        after_ms(5);
        HOOKED(semop)(s, &down, 1);
    });
    t.told("zero", HOOKED(semop)(s, &zero, 1));
    t.join();
    const timespec some = {0, 10'000'000};
    const timespec none{};
    const timespec bad = {0, 1'000'000'000};
    t.took("in vain", 10ms, [&] { t.told("in vain", HOOKED(semtimedop)(s, &down, 1, &some)); });
    t.told("at once", HOOKED(semtimedop)(s, &down, 1, &none));
    t.told("bad", HOOKED(semtimedop)(s, &down, 1, &bad));
    t.told("no operations", HOOKED(semop)(s, &down, 0));
    t.told("too many", HOOKED(semop)(s, &down, 100'000));
    sembuf no_such = {7, 1, 0};
    t.told("no such semaphore", HOOKED(semop)(s, &no_such, 1));
    t.beside([=] {
        after_ms(10);
        ::semctl(s, 0, IPC_RMID);
    });
    t.told("removed", HOOKED(semop)(s, &down, 1));
    t.join();
    t.told("is no more", HOOKED(semop)(s, &down, 1));
}

// What is to wait can be done by and by, and then what is not to wait cannot.
POSIX_CASE(an_operation_that_does_not_wait_ends_one_that_waits_for_another) {
    const int s = ::semget(IPC_PRIVATE, 2, 0600 | IPC_CREAT);
    if (s < 0) return t.said("semaphores", "there are none");
    sembuf up[] = {{0, 1, 0}};
    sembuf both[] = {{0, -1, 0}, {1, -1, IPC_NOWAIT}};
    t.beside([&] {
        after_ms(10);
        HOOKED(semop)(s, up, 1);
    });
    const timespec some = {0, 300'000'000};
    const auto began = std::chrono::steady_clock::now();
    t.told("semtimedop", HOOKED(semtimedop)(s, both, 2, &some));
    t.told("before its time", std::chrono::steady_clock::now() - began < 250ms);
    t.join();
    t.told("nothing of it is done", ::semctl(s, 0, GETVAL));
    ::semctl(s, 0, IPC_RMID);
}

class hooked_queues : public weft::testing::on_each_driver {};

TEST_P(hooked_queues, lose_no_message_when_a_stop_ends_the_wait) {
    const int v = ::msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
    run([&] {
        const posix_queue q;
        if (q.id < 0 || v < 0) GTEST_SKIP() << "no queues";
        letter l{};
        fiber a([&] {
            EXPECT_EQ(::mq_receive(q.id, l.text, sizeof l.text, nullptr), -1);
            EXPECT_EQ(errno, ECANCELED);
        });
        fiber b([&] {
            EXPECT_EQ(::msgrcv(v, &l, sizeof l.text, 0, 0), -1);
            EXPECT_EQ(errno, ECANCELED);
        });
        ::usleep(2000);
        a.request_stop();
        b.request_stop();
        a.join();
        b.join();
        const letter some = {1, "some"};
        EXPECT_EQ(::mq_send(q.id, "some", 5, 0), 0);
        EXPECT_EQ(::msgsnd(v, &some, sizeof some.text, 0), 0);
        EXPECT_EQ(::mq_receive(q.id, l.text, sizeof l.text, nullptr), 5);
        EXPECT_EQ(::msgrcv(v, &l, sizeof l.text, 0, 0), 8);
    });
    ::msgctl(v, IPC_RMID, nullptr);
}

INSTANTIATE_ON_DRIVERS(hooked_queues);

}  // namespace
