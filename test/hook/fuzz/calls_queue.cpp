// Queues of messages, of POSIX and of System V, and sets of semaphores.

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

// Of a queue of POSIX, which holds two messages of eight bytes.
constexpr choice queue_flags[] = {{"plain", 0}, {"nonblock", O_NONBLOCK}};
constexpr choice given_bytes[] = {{"0", 0}, {"3", 3}, {"8", 8}, {"9", 9}};
constexpr choice taken_bytes[] = {{"8", 8}, {"7", 7}, {"100", 100}};
constexpr choice priorities[] = {{"low", 0}, {"high", 5}, {"none", 40'000}};
enum limit : long { without, past, soon, bad_time };
constexpr choice limits[] = {
    {"plain", without}, {"past", past}, {"1ms", soon, true}, {"bad_time", bad_time}};

// Of a System V queue, which holds two hundred bytes. A fiber that waits for it polls every few
// milliseconds, so that every case of it is timed.
constexpr choice sent_bytes[] = {{"1", 1}, {"100", 100}, {"0", 0}, {"201", 201}};
constexpr choice sent_types[] = {{"1", 1}, {"2", 2}, {"0", 0}};
constexpr choice send_flags[] = {{"plain", 0}, {"nowait", IPC_NOWAIT}};
constexpr choice room_bytes[] = {{"100", 100}, {"8", 8}, {"0", 0}};
constexpr choice wanted_types[] = {{"any", 0}, {"1", 1}, {"2", 2}, {"least", -2}};
constexpr choice take_flags[] = {{"plain", 0},
                                 {"nowait", IPC_NOWAIT},
                                 {"cut", MSG_NOERROR},
                                 {"but", MSG_EXCEPT},
                                 {"nowait+cut", IPC_NOWAIT | MSG_NOERROR}};

constexpr choice ups[] = {{"one", 1}, {"two", 2}, {"too_many", 32767}, {"no_such", 0}};
constexpr choice downs[] = {{"one", -1}, {"two", -2}, {"zero", 0}, {"move", 1}, {"both", 2}};
constexpr choice spans[] = {{"plain", without}, {"past", past}, {"1ms", soon}, {"bad", bad_time}};
constexpr choice which[] = {{"0", 0}, {"1", 1}};
constexpr choice values[] = {{"0", 0}, {"3", 3}};

// Until a time point of the calendar's clock; null: for ever.
const ::timespec* moment_of(long limit, ::timespec& t) {
    if (limit == without) return nullptr;
    t = {};
    if (limit == bad_time) t.tv_nsec = 2'000'000'000;
    if (limit != soon) return &t;
    ::clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 1'000'000;
    if (t.tv_nsec >= 1'000'000'000) {
        t.tv_nsec -= 1'000'000'000;
        ++t.tv_sec;
    }
    return &t;
}

// The queue is destroyed when its last descriptor is closed: the name is the process's, and is
// removed at once.
void opens_queue(making& m) {
    static unsigned count = 0;
    const std::string name =
        "/weft-fuzz-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    ::mq_attr a{};
    a.mq_maxmsg = 2;
    a.mq_msgsize = 8;
    const int fd = ::mq_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | m.number(1), 0600, &a);
    const int why = errno;
    ::mq_unlink(name.c_str());
    m.put(0, fd);
    errno = why;
    m.tell(fd >= 0 ? 0 : -1);
}

void sends_to_queue(making& m) {
    const std::string from = m.given(m.size(1));
    ::timespec t;
    const ::timespec* const limit = moment_of(m.value(3), t);
    const auto priority = static_cast<unsigned>(m.value(2));
    m.tell(limit == nullptr ? ::mq_send(m.fd(0), from.data(), from.size(), priority)
                            : ::mq_timedsend(m.fd(0), from.data(), from.size(), priority, limit));
}

void receives_from_queue(making& m) {
    std::string room(m.size(1), '\0');
    ::timespec t;
    const ::timespec* const limit = moment_of(m.value(2), t);
    unsigned priority = 99;
    const long n = limit == nullptr
                       ? ::mq_receive(m.fd(0), room.data(), room.size(), &priority)
                       : ::mq_timedreceive(m.fd(0), room.data(), room.size(), &priority, limit);
    m.say_bytes(room, m.tell(n));
    m.say("priority " + std::to_string(priority));
}

void counts_in_queue(making& m) {
    ::mq_attr a{};
    m.tell(::mq_getattr(m.fd(0), &a));
    m.say(std::to_string(a.mq_curmsgs) + ((a.mq_flags & O_NONBLOCK) != 0 ? " nonblock" : " waits"));
}

shared_object* put_id(making& m, unsigned what, int id) {
    auto o = std::make_unique<shared_object>();
    shared_object* const made = o.get();
    o->what = what;
    o->id = id;
    m.here.put_object(m.place(0), std::move(o));
    m.tell(id >= 0 ? 0 : -1);
    return made;
}

struct letter {
    long type;
    char text[256];
};

void makes_queue(making& m) {
    const shared_object* const o = put_id(m, message_queue, ::msgget(IPC_PRIVATE, 0600));
    ::msqid_ds about{};
    m.tell(::msgctl(o->id, IPC_STAT, &about));
    about.msg_qbytes = 200;
    m.tell(::msgctl(o->id, IPC_SET, &about));
}

void sends_letter(making& m) {
    const shared_object* const o = m.object(0, message_queue);
    if (o == nullptr) return m.say("none");
    letter l{};
    l.type = m.value(2);
    std::memcpy(l.text, m.given(m.size(1)).data(), m.size(1));
    m.tell(::msgsnd(o->id, &l, m.size(1), m.number(3)));
}

void takes_letter(making& m) {
    const shared_object* const o = m.object(0, message_queue);
    if (o == nullptr) return m.say("none");
    letter l{};
    const long n = m.tell(::msgrcv(o->id, &l, m.size(1), m.value(2), m.number(3)));
    m.say_bytes(l.text, n);
    m.say("type " + std::to_string(l.type));
}

void removes_queue(making& m) {
    const shared_object* const o = m.object(0, message_queue);
    if (o == nullptr) return m.say("none");
    m.tell(::msgctl(o->id, IPC_RMID, nullptr));
}

void makes_set(making& m) {
    const shared_object* const o = put_id(m, semaphore_set, ::semget(IPC_PRIVATE, 2, 0600));
    m.tell(::semctl(o->id, 0, SETVAL, m.number(1)));
}

void operates(making& m, ::sembuf* all, std::size_t count, long limit) {
    const shared_object* const o = m.object(0, semaphore_set);
    if (o == nullptr) return m.say("none");
    if (limit == without) {
        m.tell(::semop(o->id, all, count));
    } else {
        const ::timespec span = {0, limit == past ? 0 : limit == soon ? 1'000'000 : 2'000'000'000};
        m.tell(::semtimedop(o->id, all, count, &span));
    }
}

void adds_to_set(making& m) {
    ::sembuf one{};
    one.sem_num = static_cast<unsigned short>(m.value(1) == 0 ? 9 : m.value(2));
    one.sem_op = static_cast<short>(m.value(1));
    operates(m, &one, 1, without);
}

void takes_from_set(making& m) {
    const auto flags = static_cast<short>(m.number(3));
    const auto here = static_cast<unsigned short>(m.value(2));
    const auto there = static_cast<unsigned short>(1 - m.value(2));
    ::sembuf all[2] = {{here, static_cast<short>(m.value(1)), flags}, {there, 1, 0}};
    if (m.value(1) <= 0) return operates(m, all, 1, m.value(4));
    // One from here to there; one of each, of which only the first may be waited for.
    all[0].sem_op = -1;
    if (m.value(1) == 2) all[1] = {there, -1, IPC_NOWAIT};
    operates(m, all, 2, m.value(4));
}

void sets_value(making& m) {
    const shared_object* const o = m.object(0, semaphore_set);
    if (o == nullptr) return m.say("none");
    m.tell(::semctl(o->id, m.number(1), SETVAL, m.number(2)));
}

void tells_values(making& m) {
    const shared_object* const o = m.object(0, semaphore_set);
    if (o == nullptr) return m.say("none");
    m.tell(::semctl(o->id, 0, GETVAL));
    m.tell(::semctl(o->id, 1, GETVAL));
}

void removes_set(making& m) {
    const shared_object* const o = m.object(0, semaphore_set);
    if (o == nullptr) return m.say("none");
    m.tell(::semctl(o->id, 0, IPC_RMID));
}

}  // namespace

void add_queues(std::vector<call_spec>& all) {
    all.push_back({"mq_open", 4, looks, {a_new(posix_queue), one_of(queue_flags)}, opens_queue});
    all.push_back({"mq_send",
                   6,
                   gives,
                   {a_slot(posix_queue), one_of(given_bytes), one_of(priorities), one_of(limits)},
                   sends_to_queue});
    all.push_back({"mq_receive",
                   6,
                   takes,
                   {a_slot(posix_queue), one_of(taken_bytes), one_of(limits)},
                   receives_from_queue});
    all.push_back({"mq_getattr", 1, looks, {a_slot(posix_queue)}, counts_in_queue});

    all.push_back({"msgget", 4, looks, {a_new(message_queue)}, makes_queue});
    all.push_back(
        {"msgsnd",
         6,
         gives,
         {a_slot(message_queue), one_of(sent_bytes), one_of(sent_types), one_of(send_flags)},
         sends_letter,
         true});
    all.push_back(
        {"msgrcv",
         6,
         takes,
         {a_slot(message_queue), one_of(room_bytes), one_of(wanted_types), one_of(take_flags)},
         takes_letter,
         true});
    all.push_back({"msg_remove", 1, looks, {a_slot(message_queue)}, removes_queue});

    all.push_back({"semget", 4, looks, {a_new(semaphore_set), one_of(values)}, makes_set});
    all.push_back(
        {"sem_up", 5, gives, {a_slot(semaphore_set), one_of(ups), one_of(which)}, adds_to_set});
    all.push_back(
        {"sem_down",
         6,
         takes,
         {a_slot(semaphore_set), one_of(downs), one_of(which), one_of(send_flags), one_of(spans)},
         takes_from_set,
         true});
    all.push_back({"sem_setval",
                   2,
                   looks,
                   {a_slot(semaphore_set), one_of(which), one_of(values)},
                   sets_value});
    all.push_back({"sem_values", 2, looks, {a_slot(semaphore_set)}, tells_values});
    all.push_back({"sem_remove", 1, looks, {a_slot(semaphore_set)}, removes_set});
}

}  // namespace weft::testing::fuzz
