#include "weft/base/detail/line.hpp"

#include <unistd.h>

#include <cerrno>

#include "weft/base/assert.hpp"
#include "weft/base/errno.hpp"

namespace weft::detail {

line& line::text(const char* s) noexcept {
    if (s == nullptr) return *this;
    while (*s != '\0' && size_ < sizeof buffer_) buffer_[size_++] = *s++;
    return *this;
}

line& line::number(std::uint64_t n) noexcept {
    char digits[21] = {};  // the last stays zero
    char* p = digits + sizeof digits - 1;
    do {
        *--p = static_cast<char>('0' + n % 10);
        n /= 10;
    } while (n != 0);
    return text(p);
}

line& line::hex(std::uint64_t n) noexcept {
    char digits[19] = {};
    char* p = digits + sizeof digits - 1;
    do {
        *--p = "0123456789abcdef"[n % 16];
        n /= 16;
    } while (n != 0);
    *--p = 'x';
    *--p = '0';
    return text(p);
}

line& line::agent(const agent_info& p) noexcept {
    if (p.kind == nullptr) return *this;
    text(p.kind);
    if (p.id != 0) text(" ").number(p.id);
    if (p.name != nullptr && p.name[0] != '\0') text(" \"").text(p.name).text("\"");
    return *this;
}

line& line::place(std::source_location at) noexcept {
    return text(at.file_name()).text(":").number(at.line());
}

line& line::terminate() noexcept {
    buffer_[size_ < sizeof buffer_ ? size_ : sizeof buffer_ - 1] = '\0';
    return *this;
}

void line::write(int fd) const noexcept {
    const kept_errno before;
    std::size_t done = 0;
    int most_interrupts = 1000;  // more are no signals: it goes without the line
    while (done < size_) {
        const ssize_t n = ::write(fd, buffer_ + done, size_ - done);
        if (n < 0 && get_errno() == EINTR && --most_interrupts != 0) continue;
        if (n <= 0) break;
        done += static_cast<std::size_t>(n);
    }
}

}  // namespace weft::detail
