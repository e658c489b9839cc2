#include "test/hook/fuzz/world.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace weft::testing::fuzz {

std::atomic<unsigned> world::pipe_signals{0};
std::atomic<unsigned> world::user_signals{0};

shared_object::~shared_object() {
    if (id < 0) return;
    if (what == message_queue) ::msgctl(id, IPC_RMID, nullptr);
    if (what == semaphore_set) ::semctl(id, 0, IPC_RMID);
}

world::world(bool in_fibers, int planted) noexcept : in_fibers_(in_fibers), planted_(planted) {
    take_blocked();
}

world::~world() {
    for (slot& s : slots_) {
        if (s.child > 0) {
            ::kill(s.child, SIGKILL);
            ::waitpid(s.child, nullptr, 0);
        }
        if (s.gate >= 0) ::close(s.gate);
        if (s.fd >= 0) ::close(s.fd);
    }
    take_blocked();
}

void world::send_blocked() {
    for (const int n : {SIGALRM, SIGRTMIN + 3}) ::kill(::getpid(), n);
}

void world::take_blocked() noexcept {
    ::sigset_t s;
    sigemptyset(&s);
    for (const int n : {SIGALRM, SIGRTMIN + 3}) sigaddset(&s, n);
    const ::timespec none{};
    while (::sigtimedwait(&s, nullptr, &none) > 0) {
    }
}

void world::put(unsigned i, int fd) noexcept {
    slots_[i].fd = fd;
    slots_[i].file = fd >= 0 ? ++files_ : 0;
    slots_[i].pipe = 0;
}

void world::join_ends(unsigned a, unsigned b) noexcept {
    slots_[a].pipe = slots_[b].pipe = ++files_;
}

void world::put_object(unsigned i, std::unique_ptr<shared_object> o) noexcept {
    slots_[i].object = std::move(o);
    slots_[i].file = ++files_;
}

bool world::has_terminal() const noexcept {
    return std::ranges::any_of(slots_, [](const slot& s) { return ::isatty(s.fd) != 0; });
}

bool world::holds(unsigned actor) const noexcept {
    return std::ranges::any_of(slots_, [actor](const slot& s) {
        return s.object != nullptr && s.object->held[actor].load() != 0;
    });
}

void world::release(unsigned actor) {
    for (slot& s : slots_) {
        if (s.object == nullptr) continue;
        for (; s.object->held[actor].load() != 0; --s.object->held[actor])
            if (s.object->what == rwlock)
                ::pthread_rwlock_unlock(&s.object->both);
            else
                ::pthread_mutex_unlock(&s.object->lock);
    }
}

void world::wake_all() {
    for (slot& s : slots_) {
        if (s.object == nullptr) continue;
        if (s.object->what == condition) ::pthread_cond_broadcast(&s.object->condition);
        if (s.object->what == semaphore) ::sem_post(&s.object->count);
    }
}

void world::put_copy(unsigned i, int fd, unsigned of) noexcept {
    slots_[i].fd = fd;
    slots_[i].file = fd >= 0 ? slots_[of].file : 0;
    slots_[i].pipe = fd >= 0 ? slots_[of].pipe : 0;
}

std::string world::run(const program& p, unsigned at) {
    making m(*this, p, at);
    errno = 0;
    calls()[p[at].call].make(m);
    return std::move(m.text);
}

std::string world::last_look() {
    std::string text;
    for (unsigned i = 0; i != slot_count; ++i) {
        if (const shared_object* const o = slots_[i].object.get(); o != nullptr && o->id >= 0) {
            ::msqid_ds about{};
            text += "s" + std::to_string(i) + " holds ";
            if (o->what == message_queue)
                text += std::to_string(::msgctl(o->id, IPC_STAT, &about)) + " " +
                        std::to_string(about.msg_qnum) + "; ";
            else
                text += std::to_string(::semctl(o->id, 0, GETVAL)) + " " +
                        std::to_string(::semctl(o->id, 1, GETVAL)) + "; ";
        }
        if (slots_[i].fd < 0) continue;
        ::pollfd look = {slots_[i].fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP, 0};
        ::poll(&look, 1, 0);
        // How much a terminal takes, and so whether there is room, depends on the parts in which it
        // is written.
        if (gives_much && ::isatty(look.fd) != 0) look.revents &= static_cast<short>(~POLLOUT);
        if (gives_much && has_terminal() && is_epoll_set(look.fd))
            look.revents &= static_cast<short>(~POLLIN);
        text += "s" + std::to_string(i) + " " + std::to_string(look.revents);
        int error = 0;
        ::socklen_t bytes = sizeof error;
        if (::getsockopt(look.fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error != 0)
            text += " " + name_of_error(error);
        text += "; ";
    }
    return text;
}

bool is_epoll_set(int fd) {
    const int before = errno;
    char name[32];
    const ::ssize_t n =
        ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name, sizeof name);
    errno = before;
    return std::string_view(name, n > 0 ? static_cast<std::size_t>(n) : 0) ==
           "anon_inode:[eventpoll]";
}

// The system has some that no program is to see, and leaves one in a socket now and then.
std::string name_of_error(int error) {
    const char* const name = ::strerrorname_np(error);
    return name != nullptr ? name : std::to_string(error);
}

void making::say(const std::string& what) { text.append(text.empty() ? "" : " ").append(what); }

long making::tell(long answer) {
    const int why = errno;
    if (answer > 1 && here.is_planted(step_.call)) --answer;
    say(std::to_string(answer));
    if (answer == -1) say(name_of_error(why));
    errno = why;
    return answer;
}

bool making::takes_nothing(unsigned i, std::size_t bytes) {
    int domain = 0;
    ::socklen_t room = sizeof domain;
    if (bytes != 0 || ::getsockopt(fd(i), SOL_SOCKET, SO_DOMAIN, &domain, &room) != 0 ||
        domain != AF_INET)
        return false;
    say("nothing");
    return true;
}

bool making::looks_past_urgent(int flags) {
    if (flags != (MSG_PEEK | MSG_WAITALL) || !here.urgent_taken) return false;
    say("nothing");
    return true;
}

int making::tell_error(int error) {
    say(error == 0 ? "0" : name_of_error(error));
    return error;
}

long making::tell_moved(long answer, std::size_t wanted) {
    constexpr long many = 4096;
    if (answer < many || !here.has_parts) return tell(answer);
    // A call that does not wait has what is there at the time of the call.
    const bool waits = (::fcntl(fd(0), F_GETFL) & O_NONBLOCK) == 0;
    say(!waits ? "much" : answer == static_cast<long>(wanted) ? "all" : "a part");
    return answer;
}

void making::say_bytes(const std::string& bytes, long count) {
    if (count <= 0) return;
    const auto end = bytes.begin() + std::min<long>(count, static_cast<long>(bytes.size()));
    std::string runs;
    for (auto at = bytes.begin(); at != end && runs.size() < 60;) {
        const auto next = std::find_if(at, end, [at](char c) { return c != *at; });
        const auto value = static_cast<unsigned char>(*at);
        const bool is_word = (value >= 'a' && value <= 'z') || (value >= 'A' && value <= 'Z');
        if (!runs.empty()) runs += " ";
        runs += is_word ? std::string(1, *at) : "#" + std::to_string(value);
        if (next - at < 4096 || !here.has_parts) runs += ":" + std::to_string(next - at);
        at = next;
    }
    say("(" + runs + ")");
}

}  // namespace weft::testing::fuzz
