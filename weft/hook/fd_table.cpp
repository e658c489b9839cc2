#include "weft/hook/detail/fd_table.hpp"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/number_table.hpp"

namespace weft::hook {
namespace {

using place = atomic<std::uint8_t>;

constinit number_table<place> table;
constinit atomic<unsigned> highest{0};  // fd of which anything was ever learnt

// Orders: a byte publishes nothing else, nor does `highest`.
constexpr auto relaxed = std::memory_order_relaxed;

// A file without an inode of its own is identified by a name.
bool is_counter(int fd) noexcept {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    char name[32];
    const ssize_t n = ::readlink(path, name, sizeof name);
    return n > 0 && std::string_view(name, static_cast<std::size_t>(n)) == "anon_inode:[eventfd]";
}

std::uint8_t asked_of_device(int fd, ::mode_t mode) noexcept {
    if (!S_ISCHR(mode)) return is_counter(fd) ? fd_sort::counter : fd_sort::device;
    ::termios modes;
    if (::tcgetattr(fd, &modes) != 0) return fd_sort::device;
    unsigned number;
    if (real::ioctl(fd, TIOCGPTN, &number) != 0) return fd_sort::terminal;
    return fd_sort::device | fd_sort::steers;
}

std::uint8_t asked(int fd) noexcept {
    struct ::stat s;
    if (::fstat(fd, &s) != 0) return fd_sort::unknown;
    if (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode) || S_ISBLK(s.st_mode)) return fd_sort::file;
    if (S_ISFIFO(s.st_mode)) return fd_sort::pipe;
    if (!S_ISSOCK(s.st_mode)) return asked_of_device(fd, s.st_mode);
    int type = 0;
    ::socklen_t bytes = sizeof type;
    real::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes);
    return type == SOCK_STREAM ? fd_sort::stream : fd_sort::message;
}

}  // namespace

fd_sort known_sort(int fd) noexcept {
    const place* const p = table.find(fd);
    return {p != nullptr ? p->load(relaxed) : fd_sort::unknown};
}

fd_sort learn_sort(int fd) noexcept {
    const int before = errno;
    const std::uint8_t sort = asked(fd);
    errno = before;
    // Descriptors of a child that shares this memory belong to other files.
    if (sort == fd_sort::unknown || !is_own_process()) return {sort};
    const auto number = static_cast<unsigned>(fd);
    unsigned most = highest.load(relaxed);
    while (most < number && !highest.compare_exchange_weak(most, number, relaxed)) {
    }
    if (place* const p = table.make(fd)) p->store(sort, relaxed);
    return {sort};
}

fd_sort sort_of_file(int fd) noexcept {
    const int before = errno;
    const bool has_a_place = ::lseek(fd, 0, SEEK_CUR) >= 0;
    errno = before;
    return has_a_place ? fd_sort{fd_sort::file} : learn_sort(fd);
}

void add_to_sort(int fd, std::uint8_t bits) noexcept {
    place* const p = table.find(fd);
    if (p != nullptr && (p->load(relaxed) & fd_sort::sort_mask) != fd_sort::unknown)
        p->fetch_or(bits, relaxed);
}

void invalidate_sort(int fd) noexcept {
    place* const p = table.find(fd);
    if (p != nullptr && p->load(relaxed) != 0) p->store(0, relaxed);
}

void invalidate_sorts(unsigned first, unsigned last) noexcept {
    table.for_each(first, std::min(last, highest.load(relaxed)), [](int, place& p) {
        if (p.load(relaxed) != 0) p.store(0, relaxed);
    });
}

bool is_nonblocking(int fd) noexcept {
    const int flags = real::fcntl(fd, F_GETFL, nullptr);
    return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

}  // namespace weft::hook
