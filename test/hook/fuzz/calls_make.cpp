// Where descriptors come from.

#include <arpa/inet.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <span>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

constexpr choice pipe_flags[] = {{"plain", 0}, {"nonblock", O_NONBLOCK}, {"direct", O_DIRECT}};
constexpr choice socket_flags[] = {{"plain", 0}, {"plain2", 0}, {"nonblock", SOCK_NONBLOCK}};
constexpr choice event_flags[] = {
    {"plain", 0}, {"semaphore", EFD_SEMAPHORE}, {"nonblock", EFD_NONBLOCK}};
constexpr choice event_values[] = {{"0", 0}, {"2", 2}};
constexpr choice accept_flags[] = {
    {"plain", 0}, {"nonblock", SOCK_NONBLOCK}, {"bad", 0x4000000}, {"old", -1}};
constexpr choice families[] = {{"tcp", AF_INET}, {"local", AF_UNIX}};
constexpr choice backlogs[] = {{"0", 0}, {"8", 8}};
constexpr choice copies[] = {{"dup", 0}, {"F_DUPFD", F_DUPFD}, {"cloexec", F_DUPFD_CLOEXEC}};
constexpr choice ways[] = {{"rdwr", O_RDWR}, {"reads", O_RDONLY}, {"writes", O_WRONLY}};
constexpr choice paths[] = {{"null", 0}, {"zero", 1}, {"full", 2}};

::sockaddr* general(void* a) { return static_cast<::sockaddr*>(a); }

int listening(int family, int backlog) {
    const int fd = ::socket(family, SOCK_STREAM, 0);
    ::sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::sockaddr_un un{};
    un.sun_family = AF_UNIX;  // with no more than that the system chooses a name
    if (family == AF_INET)
        ::bind(fd, general(&in), sizeof in);
    else
        ::bind(fd, general(&un), sizeof un.sun_family);
    ::listen(fd, backlog);
    return fd;
}

int connected_to(int fd, int flags, int& answer) {
    ::sockaddr_storage to{};
    ::socklen_t bytes = sizeof to;
    ::getsockname(fd, general(&to), &bytes);
    const int made = ::socket(to.ss_family, SOCK_STREAM | flags, 0);
    answer = ::connect(made, general(&to), bytes);
    return made;
}

void tcp(making& m) {
    const int l = listening(AF_INET, 4);
    int answer = 0;
    m.put(0, connected_to(l, 0, answer));
    m.tell(answer);
    const int other = ::accept(l, nullptr, nullptr);
    m.put(1, other);
    m.tell(other >= 0 ? 0 : -1);
    ::close(l);
}

template <int Type>
void local_pair(making& m) {
    int two[2] = {-1, -1};
    m.tell(::socketpair(AF_UNIX, Type | m.number(2), 0, two));
    m.put(0, two[0]);
    m.put(1, two[1]);
}

void udp(making& m) {
    int two[2];
    ::sockaddr_in at[2];
    for (int i = 0; i != 2; ++i) {
        two[i] = ::socket(AF_INET, SOCK_DGRAM, 0);
        at[i] = {};
        at[i].sin_family = AF_INET;
        at[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::bind(two[i], general(&at[i]), sizeof at[i]);
        ::socklen_t bytes = sizeof at[i];
        ::getsockname(two[i], general(&at[i]), &bytes);
    }
    for (int i = 0; i != 2; ++i) {
        m.tell(::connect(two[i], general(&at[1 - i]), sizeof at[i]));
        m.put(static_cast<unsigned>(i), two[i]);
    }
}

void pipes(making& m) {
    int two[2] = {-1, -1};
    m.tell(m.number(2) == 0 ? ::pipe(two) : ::pipe2(two, m.number(2)));
    m.put(0, two[0]);
    m.put(1, two[1]);
    m.here.join_ends(m.place(0), m.place(1));
}

// The name is the process's, so that another step of the program opens the same.
std::string fifo_path() {
    const char* const folder = std::getenv("TMPDIR");
    return std::string(folder != nullptr ? folder : "/tmp") + "/weft-fuzz-" +
           std::to_string(::getpid());
}

void fifo(making& m) {
    const std::string path = fifo_path();
    ::mkfifo(path.c_str(), 0600);
    const int fd = ::open(path.c_str(), m.number(1));
    ::unlink(path.c_str());
    m.put(0, fd);
    m.tell(fd >= 0 ? 0 : -1);
}

void pty(making& m) {
    int two[2] = {-1, -1};
    m.tell(::openpty(&two[0], &two[1], nullptr, nullptr, nullptr));
    ::termios t{};
    ::tcgetattr(two[1], &t);
    ::cfmakeraw(&t);
    ::tcsetattr(two[1], TCSANOW, &t);
    m.put(0, two[0]);
    m.put(1, two[1]);
}

void temporary(making& m) {
    std::FILE* const made = ::tmpfile();
    m.put(0, ::dup(::fileno(made)));
    ::fclose(made);
    m.tell(m.fd(0) >= 0 ? 0 : -1);
}

void device(making& m) {
    constexpr const char* all[] = {"/dev/null", "/dev/zero", "/dev/full"};
    const int fd = ::open(all[m.value(1)], O_RDWR);
    m.put(0, fd);
    m.tell(fd >= 0 ? 0 : -1);
}

void accepted(making& m) {
    ::sockaddr_storage peer{};
    ::socklen_t bytes = sizeof peer;
    const int flags = m.number(2);
    const int fd = flags < 0 ? ::accept(m.fd(1), general(&peer), &bytes)
                             : ::accept4(m.fd(1), general(&peer), &bytes, flags);
    if (m.tell(fd >= 0 ? 0 : -1) != 0) return;
    m.put(0, fd);
    m.say(std::to_string(peer.ss_family));
    m.say((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 ? "nonblock" : "waits");
}

void connects(making& m) {
    int answer = 0;
    m.put(0, connected_to(m.fd(1), m.number(2), answer));
    m.tell(answer);
}

void copied(making& m) {
    const int how = m.number(2);
    const int fd = how == 0 ? ::dup(m.fd(1)) : ::fcntl(m.fd(1), how, 0);
    m.here.put_copy(m.place(0), fd, m.place(1));
    m.tell(fd >= 0 ? 0 : -1);
}

}  // namespace

void add_makers(std::vector<call_spec>& all) {
    const auto two = [](unsigned kinds, std::span<const choice> flags) {
        return std::vector{a_new(kinds), a_new(kinds), one_of(flags)};
    };
    all.push_back({"tcp", 6, looks, {a_new(stream_socket), a_new(stream_socket)}, tcp});
    all.push_back(
        {"local_stream", 5, looks, two(stream_socket, socket_flags), local_pair<SOCK_STREAM>});
    all.push_back(
        {"local_dgram", 4, looks, two(message_socket, socket_flags), local_pair<SOCK_DGRAM>});
    all.push_back({"local_seqpacket", 3, looks, two(message_socket, socket_flags),
                   local_pair<SOCK_SEQPACKET>});
    all.push_back({"udp", 3, looks, {a_new(message_socket), a_new(message_socket)}, udp});
    all.push_back({"pipe", 6, looks, two(pipe_end, pipe_flags), pipes});
    all.push_back({"fifo", 3, looks, {a_new(pipe_end), one_of(ways)}, fifo});
    all.push_back({"pty", 2, looks, {a_new(terminal), a_new(terminal)}, pty});
    all.push_back({"eventfd",
                   4,
                   looks,
                   {a_new(event_counter), one_of(event_values), one_of(event_flags)},
                   [](making& m) {
                       m.put(0, ::eventfd(static_cast<unsigned>(m.value(1)), m.number(2)));
                       m.tell(m.fd(0) >= 0 ? 0 : -1);
                   }});
    all.push_back({"timerfd", 3, looks, {a_new(timer), one_of(socket_flags)}, [](making& m) {
                       m.put(0, ::timerfd_create(CLOCK_MONOTONIC, m.number(1)));
                       m.tell(m.fd(0) >= 0 ? 0 : -1);
                   }});
    all.push_back({"tmpfile", 3, looks, {a_new(file)}, temporary});
    all.push_back({"memfd", 1, looks, {a_new(file)}, [](making& m) {
                       m.put(0, ::memfd_create("weft", 0));
                       m.tell(m.fd(0) >= 0 ? 0 : -1);
                   }});
    all.push_back({"device", 1, looks, {a_new(file), one_of(paths)}, device});
    all.push_back({"epoll_create", 3, looks, {a_new(epoll_set)}, [](making& m) {
                       m.put(0, ::epoll_create1(0));
                       m.tell(m.fd(0) >= 0 ? 0 : -1);
                   }});
    all.push_back(
        {"listen", 4, looks, {a_new(listener), one_of(families), one_of(backlogs)}, [](making& m) {
             m.put(0, listening(m.number(1), m.number(2)));
             m.tell(m.fd(0) >= 0 ? 0 : -1);
         }});
    all.push_back({"accept",
                   6,
                   looks,
                   {a_new(stream_socket), a_slot(listener), one_of(accept_flags)},
                   accepted});
    all.push_back({"connect",
                   6,
                   looks,
                   {a_new(stream_socket), a_slot(listener), one_of(socket_flags)},
                   connects});
    all.push_back({"dup", 4, looks, {a_new(anything), a_slot(anything), one_of(copies)}, copied});
}

}  // namespace weft::testing::fuzz
