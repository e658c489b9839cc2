// line: text of one line, put together without allocation, in a signal handler too.
//
// A fixed buffer that keeps what fits and drops the rest; write() writes it to a file descriptor in
// one system call, so that lines of several threads do not mix.
//
//   line{}.text("weft: ").number(7).newline().write(2);
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace weft {

struct agent_info;  // assert.hpp

namespace detail {

class line {
public:
    line& text(const char* s) noexcept;         // null counts as ""
    line& number(std::uint64_t n) noexcept;     // decimal
    line& hex(std::uint64_t n) noexcept;        // 0x...
    line& agent(const agent_info& p) noexcept;  // fiber 7 "login"; one without a kind is left out
    line& place(std::source_location at) noexcept;  // server.cpp:31
    line& newline() noexcept { return text("\n"); }
    line& terminate() noexcept;         // makes data() a C string
    void write(int fd) const noexcept;  // keeps errno

    const char* data() const noexcept { return buffer_; }
    std::size_t size() const noexcept { return size_; }

private:
    char buffer_[512];
    std::size_t size_ = 0;
};

}  // namespace detail
}  // namespace weft
