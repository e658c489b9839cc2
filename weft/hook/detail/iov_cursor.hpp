// iov_cursor: the progress of a call that was given several buffers. The rest of the buffer in
// progress goes alone, so that nothing is copied. The call is done with all buffers, or with as
// much as the system moves in one call.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace weft::hook {

inline constexpr std::size_t most_bytes = 0x7ffff000;  // that the system moves in one call

class iov_cursor {
public:
    iov_cursor(const iovec* v, int count) noexcept : at_(v), left_(count) {}

    // What is left; valid until advance().
    const iovec* buffers() const noexcept { return in_one_ ? &one_ : at_; }
    int count() const noexcept { return in_one_ ? 1 : left_; }
    bool has_moved() const noexcept { return moved_ != 0; }

    void put_into(msghdr& m) const noexcept {
        m.msg_iov = const_cast<iovec*>(buffers());
        m.msg_iovlen = static_cast<std::size_t>(std::max(count(), 0));
    }

    // Copies the next bytes, at most `most`. Returns the count.
    std::size_t copy_to(char* to, std::size_t most) const noexcept {
        std::size_t n = 0;
        for (int i = 0; i < left_ && n < most; ++i) {
            const iovec& here = i == 0 && in_one_ ? one_ : at_[i];
            const std::size_t part = std::min(here.iov_len, most - n);
            if (part != 0) std::memcpy(to + n, here.iov_base, part);
            n += part;
        }
        return n;
    }

    // Whether buffers() is not all that is left.
    bool has_more_buffers() const noexcept { return in_one_ && left_ > 1; }
    // All buffers that are left, of the first one only its rest.
    std::size_t all_count() const noexcept { return static_cast<std::size_t>(std::max(left_, 0)); }
    void copy_all_to(iovec* to) const noexcept {
        std::copy_n(at_, all_count(), to);
        if (in_one_) *to = one_;
    }

    // Records n more bytes as done; true if those were all.
    bool advance(std::size_t n) noexcept {
        moved_ += n;
        if (moved_ >= most_bytes) return true;
        while (left_ > 0) {
            const iovec here = in_one_ ? one_ : *at_;
            if (n < here.iov_len) {
                one_ = {static_cast<char*>(here.iov_base) + n, here.iov_len - n};
                in_one_ = true;
                return false;
            }
            n -= here.iov_len;
            in_one_ = false;
            ++at_;
            --left_;
        }
        return true;
    }

    std::size_t bytes() const noexcept {
        std::size_t n = 0;
        for (int i = 0; i < left_; ++i) n += std::min(at_[i].iov_len, most_bytes);
        return std::min(n, most_bytes);
    }

private:
    const iovec* at_;
    int left_;
    iovec one_{};
    bool in_one_ = false;
    std::size_t moved_ = 0;
};

}  // namespace weft::hook
