#include "weft/base/detail/line.hpp"

#include "weft/base/assert.hpp"

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

}  // namespace weft::detail
