// Bytes in and out.

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <span>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

constexpr choice recv_flags[] = {{"plain", 0},
                                 {"peek", MSG_PEEK},
                                 {"waitall", MSG_WAITALL},
                                 {"dontwait", MSG_DONTWAIT},
                                 {"peek+waitall", MSG_PEEK | MSG_WAITALL},
                                 {"trunc", MSG_TRUNC},
                                 {"waitall+dontwait", MSG_WAITALL | MSG_DONTWAIT},
                                 {"oob", MSG_OOB}};
constexpr choice send_flags[] = {{"plain", 0},
                                 {"nosignal", MSG_NOSIGNAL},
                                 {"dontwait", MSG_DONTWAIT},
                                 {"more", MSG_MORE},
                                 {"oob", MSG_OOB}};
constexpr choice places[] = {{"0", 0}, {"5", 5}, {"-1", -1}};
constexpr choice tries[] = {{"plain", 0}, {"nowait", RWF_NOWAIT}};
constexpr choice splices[] = {{"plain", 0}, {"nonblock", SPLICE_F_NONBLOCK}};
constexpr choice whence[] = {{"set", SEEK_SET}, {"end", SEEK_END}};

// A buffer in three parts, one of them empty.
struct parts {
    ::iovec all[3];
    parts(char* at, std::size_t bytes) {
        all[0] = {at, bytes / 3};
        all[1] = {at, 0};
        all[2] = {at + bytes / 3, bytes - bytes / 3};
    }
};

template <class F>
void takes_into(making& m, std::size_t bytes, F f) {
    std::string room(bytes, '\0');
    m.say_bytes(room, m.tell_moved(f(room.data()), bytes));
}

void reads(making& m) {
    takes_into(m, m.size(1), [&](char* to) { return ::read(m.fd(0), to, m.size(1)); });
}
void writes(making& m) {
    const std::string from = m.given(m.size(1));
    m.tell_moved(::write(m.fd(0), from.data(), from.size()), from.size());
}
void reads_parts(making& m) {
    takes_into(m, m.size(1), [&](char* to) {
        const parts p(to, m.size(1));
        return ::readv(m.fd(0), p.all, 3);
    });
}
void writes_parts(making& m) {
    std::string from = m.given(m.size(1));
    const parts p(from.data(), from.size());
    m.tell_moved(::writev(m.fd(0), p.all, 3), from.size());
}
void receives(making& m) {
    if (m.takes_nothing(0, m.size(1)) || m.looks_past_urgent(m.number(2))) return;
    takes_into(m, m.size(1), [&](char* to) {
        const ::ssize_t n = ::recv(m.fd(0), to, m.size(1), m.number(2));
        m.took(n, m.number(2));
        return n;
    });
}
void receives_from(making& m) {
    if (m.takes_nothing(0, m.size(1)) || m.looks_past_urgent(m.number(2))) return;
    ::sockaddr_storage peer{};
    ::socklen_t room = sizeof peer;
    takes_into(m, m.size(1), [&](char* to) {
        const ::ssize_t n = ::recvfrom(m.fd(0), to, m.size(1), m.number(2),
                                       reinterpret_cast<::sockaddr*>(&peer), &room);
        m.took(n, m.number(2));
        return n;
    });
    m.say("from " + std::to_string(room));
}
void sends(making& m) {
    const std::string from = m.given(m.size(1));
    m.tell_moved(::send(m.fd(0), from.data(), from.size(), m.number(2)), from.size());
}
void reads_at(making& m) {
    takes_into(m, m.size(1), [&](char* to) { return ::pread(m.fd(0), to, m.size(1), m.value(2)); });
}
void writes_at(making& m) {
    const std::string from = m.given(m.size(1));
    m.tell_moved(::pwrite(m.fd(0), from.data(), from.size(), m.value(2)), from.size());
}
void tries_to_read(making& m) {
    takes_into(m, m.size(1), [&](char* to) {
        const parts p(to, m.size(1));
        return ::preadv2(m.fd(0), p.all, 3, m.value(2), m.number(3));
    });
}
void sends_file(making& m) {
    ::off_t at = 0;
    if (m.here.at(m.place(0)).file == m.here.at(m.place(1)).file) return m.say("the same file");
    m.tell_moved(::sendfile(m.fd(0), m.fd(1), &at, m.size(2)), m.size(2));
}
void splices_over(making& m) {
    m.tell_moved(
        ::splice(m.fd(0), nullptr, m.fd(1), nullptr, m.size(2), static_cast<unsigned>(m.value(3))),
        m.size(2));
}
void tees(making& m) {
    m.tell_moved(::tee(m.fd(0), m.fd(1), m.size(2), static_cast<unsigned>(m.value(3))), m.size(2));
}
// Into the pipe or out of it, by which end it is. A pipe is given the very pages, so that they stay
// as they are.
void gives_memory(making& m) {
    static std::string* const given = new std::string(300'000, 'm');
    static std::string* const room = new std::string(300'000, '\0');
    const bool takes = (::fcntl(m.fd(0), F_GETFL) & O_ACCMODE) == O_RDONLY;
    const ::iovec v = {(takes ? room : given)->data(), m.size(1)};
    m.tell_moved(::vmsplice(m.fd(0), &v, 1, static_cast<unsigned>(m.value(2))), m.size(1));
}
// Writes eight bytes that hold an integer.
void adds(making& m) {
    const std::uint64_t n = m.value(1) < 0 ? ~std::uint64_t{0} - 1 : m.size(1);
    m.tell(::write(m.fd(0), &n, sizeof n));
}
constexpr choice additions[] = {{"1", 1}, {"3", 3}, {"most", -1}};

}  // namespace

void add_movers(std::vector<call_spec>& all) {
    const auto some = [](unsigned kinds) { return std::vector{a_slot(kinds), one_of(sizes)}; };
    const auto flagged = [](std::span<const choice> flags) {
        return std::vector{a_slot(sockets), one_of(sizes), one_of(flags)};
    };
    all.push_back({"read", 14, takes, some(bytes), reads});
    all.push_back({"write", 16, gives, some(bytes), writes});
    all.push_back({"readv", 4, takes, some(bytes), reads_parts});
    all.push_back({"writev", 4, gives, some(bytes), writes_parts});
    all.push_back({"recv", 14, takes, flagged(recv_flags), receives});
    all.push_back({"recvfrom", 4, takes, flagged(recv_flags), receives_from});
    all.push_back({"send", 12, gives, flagged(send_flags), sends});
    all.push_back({"pread", 2, takes, {a_slot(file), one_of(sizes), one_of(places)}, reads_at});
    all.push_back({"pwrite", 2, gives, {a_slot(file), one_of(sizes), one_of(places)}, writes_at});
    all.push_back({"preadv2",
                   2,
                   takes,
                   {a_slot(bytes), one_of(sizes), one_of(places), one_of(tries)},
                   tries_to_read});
    all.push_back({"lseek", 2, takes, {a_slot(file), one_of(whence)}, [](making& m) {
                       m.tell(::lseek(m.fd(0), 0, m.number(1)));
                   }});
    all.push_back({"sendfile", 1, gives, {a_slot(bytes), a_slot(file), one_of(sizes)}, sends_file});
    all.push_back({"splice",
                   2,
                   takes | gives | holds,
                   {a_slot(bytes), a_slot(pipe_end), one_of(sizes), one_of(splices)},
                   splices_over});
    all.push_back({"splice_out",
                   2,
                   takes | gives | holds,
                   {a_slot(pipe_end), a_slot(bytes), one_of(sizes), one_of(splices)},
                   splices_over});
    all.push_back({"tee",
                   1,
                   takes | gives | holds,
                   {a_slot(pipe_end), a_slot(pipe_end), one_of(sizes), one_of(splices)},
                   tees});
    all.push_back({"vmsplice",
                   1,
                   takes | gives,
                   {a_slot(pipe_end), one_of(sizes), one_of(splices)},
                   gives_memory});
    all.push_back({"add", 4, gives, {a_slot(event_counter), one_of(additions)}, adds});
}

}  // namespace weft::testing::fuzz
