#include "weft/hook/detail/proc_field.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "weft/hook/detail/calls.hpp"

namespace weft::hook {
namespace {

ssize_t read_beginning(const char* path, char* into, std::size_t bytes) noexcept {
    const int fd = real::open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    const ssize_t n = real::read(fd, into, bytes);
    real::close(fd);
    return n;
}

}  // namespace

bool ask_proc(const char* path, const char* name, int base, std::uint64_t& into) noexcept {
    const int before = errno;
    char text[1024];
    const ssize_t n = read_beginning(path, text, sizeof text - 1);
    text[std::max<ssize_t>(n, 0)] = '\0';
    const char* const at = std::strstr(text, name);
    if (at != nullptr) into = std::strtoull(at + std::strlen(name), nullptr, base);
    errno = before;
    return at != nullptr;
}

}  // namespace weft::hook
