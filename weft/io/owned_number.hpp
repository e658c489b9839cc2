// owned_number: an open fd that no object of weft has adopted yet.
//
// Design: the destructor closes the fd, unless it was released.
//
// Limits: an error of close(2) is not reported. An fd_watch of the fd is destroyed before the fd is
// closed.
//
//   weft::owned_number n(::dup(1));
//   if (n) use(weft::pipe_writer::adopt(n.release()));
#pragma once

#include <unistd.h>

#include <utility>

namespace weft {

class owned_number {
public:
    owned_number() noexcept = default;  // none
    explicit owned_number(int number) noexcept : number_(number) {}
    owned_number(owned_number&& other) noexcept : number_(other.release()) {}
    owned_number& operator=(owned_number&& other) noexcept {
        if (this != &other) reset(other.release());
        return *this;
    }
    // Closes the fd.
    ~owned_number() { reset(); }

    explicit operator bool() const noexcept { return number_ >= 0; }
    int get() const noexcept { return number_; }  // negative: none

    // The caller owns the fd from now on.
    [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
    // Closes the present fd, and owns the given one from now on.
    void reset(int number = -1) noexcept {
        if (const int old = std::exchange(number_, number); old >= 0) ::close(old);
    }

private:
    int number_ = -1;
};

}  // namespace weft
