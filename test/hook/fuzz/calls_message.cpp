// Messages, one and several, with and without descriptors in them.

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

constexpr choice flags_in[] = {{"plain", 0},
                               {"peek", MSG_PEEK},
                               {"waitall", MSG_WAITALL},
                               {"dontwait", MSG_DONTWAIT},
                               {"trunc", MSG_TRUNC},
                               {"cloexec", MSG_CMSG_CLOEXEC}};
constexpr choice flags_out[] = {
    {"plain", 0}, {"dontwait", MSG_DONTWAIT}, {"nosignal", MSG_NOSIGNAL}};
constexpr choice flags_of_many[] = {
    {"plain", 0}, {"waitforone", MSG_WAITFORONE}, {"dontwait", MSG_DONTWAIT}, {"peek", MSG_PEEK}};
constexpr choice rights[] = {{"bare", 0}, {"rights", 1}};
constexpr choice counts[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}};

constexpr std::size_t control_bytes = 128;

// A handler that ends a recvmmsg after its first messages leaves in the socket an error that no
// program is to see (ERESTARTSYS): docs/hooks.md, An error that follows a part.
void forget_interruption(int fd) {
    int error = 0;
    ::socklen_t bytes = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
}

// Closes what came, and counts it.
unsigned rights_in(::msghdr& m) {
    unsigned count = 0;
    for (::cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
            int fd;
            ::memcpy(&fd, reinterpret_cast<char*>(c) + at, sizeof fd);
            ::close(fd);
            ++count;
        }
    }
    return count;
}

void receives_message(making& m) {
    if (m.takes_nothing(0, m.size(1))) return;
    std::string room(m.size(1), '\0');
    ::iovec parts[2] = {{room.data(), room.size() / 2},
                        {room.data() + room.size() / 2, room.size() - room.size() / 2}};
    alignas(::cmsghdr) char control[control_bytes];
    ::msghdr h{};
    h.msg_iov = parts;
    h.msg_iovlen = 2;
    if (m.value(3) != 0) {
        h.msg_control = control;
        h.msg_controllen = sizeof control;
    }
    const long n = m.tell_moved(::recvmsg(m.fd(0), &h, m.number(2)), room.size());
    if (n < 0) return;
    m.say_bytes(room, n);
    m.say("flags " + std::to_string(h.msg_flags) + " rights " + std::to_string(rights_in(h)));
}

void sends_message(making& m) {
    std::string from = m.given(m.size(1));
    ::iovec one = {from.data(), from.size()};
    alignas(::cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    ::msghdr h{};
    h.msg_iov = &one;
    h.msg_iovlen = 1;
    const int passed = m.value(3) != 0 ? ::open("/dev/null", O_RDONLY) : -1;
    if (passed >= 0) {
        h.msg_control = control;
        h.msg_controllen = sizeof control;
        ::cmsghdr* const c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof passed);
        ::memcpy(CMSG_DATA(c), &passed, sizeof passed);
    }
    const long n = ::sendmsg(m.fd(0), &h, m.number(2));
    const int why = errno;
    if (passed >= 0) ::close(passed);
    errno = why;
    m.tell_moved(n, from.size());
}

struct messages {
    ::mmsghdr all[3] = {};
    ::iovec parts[3];
    messages(char* at, std::size_t bytes_each) {
        for (unsigned i = 0; i != 3; ++i) {
            parts[i] = {at + i * bytes_each, bytes_each};
            all[i].msg_hdr.msg_iov = &parts[i];
            all[i].msg_hdr.msg_iovlen = 1;
        }
    }
};

void receives_messages(making& m) {
    if (m.takes_nothing(0, m.size(1))) return;
    const std::size_t each = m.size(1);
    std::string room(3 * each, '\0');
    messages h(room.data(), each);
    ::timespec limit = {0, m.value(4) * 1000 * 1000};
    const unsigned signals = world::user_signals;
    const int n = ::recvmmsg(m.fd(0), h.all, static_cast<unsigned>(m.value(2)), m.number(3),
                             m.value(4) < 0 ? nullptr : &limit);
    m.tell(n);
    if (n > 0 && n < m.number(2) && world::user_signals != signals) forget_interruption(m.fd(0));
    for (int i = 0; i < n && i < 3; ++i) {
        m.say_bytes(room.substr(static_cast<std::size_t>(i) * each, each), h.all[i].msg_len);
        m.say(std::to_string(h.all[i].msg_hdr.msg_flags));
    }
}

void sends_messages(making& m) {
    const std::size_t each = m.size(1);
    std::string from = m.given(3 * each);
    messages h(from.data(), each);
    const int n = ::sendmmsg(m.fd(0), h.all, static_cast<unsigned>(m.value(2)), m.number(3));
    m.tell(n);
    for (int i = 0; i < n && i < 3; ++i) m.tell_moved(h.all[i].msg_len, each);
}

}  // namespace

void add_messages(std::vector<call_spec>& all) {
    all.push_back({"recvmsg",
                   8,
                   takes,
                   {a_slot(sockets), one_of(sizes), one_of(flags_in), one_of(rights)},
                   receives_message});
    all.push_back({"sendmsg",
                   7,
                   gives,
                   {a_slot(sockets), one_of(sizes), one_of(flags_out), one_of(rights)},
                   sends_message});
    all.push_back({"recvmmsg",
                   5,
                   takes,
                   {a_slot(sockets), one_of(short_sizes), one_of(counts), one_of(flags_of_many),
                    one_of(waits)},
                   receives_messages});
    all.push_back({"sendmmsg",
                   4,
                   gives,
                   {a_slot(sockets), one_of(sizes), one_of(counts), one_of(flags_out)},
                   sends_messages});
}

}  // namespace weft::testing::fuzz
