// transfer_result: how far a transfer of a given length came.
//
// Design: a transfer that ends early keeps what was transferred until then, and says why it ended.
//
// Limits: it has the count of bytes and not the bytes: those that are left begin at bytes() in the
// caller's buffer.
//
//   weft::transfer_result sent = stream.write_all(bytes);
//   if (!sent) log(sent.bytes(), sent.error().message());
#pragma once

#include <cstddef>
#include <system_error>

#include "weft/base/result.hpp"

namespace weft {

class [[nodiscard]] transfer_result {
public:
    transfer_result() noexcept = default;
    transfer_result(std::size_t bytes, std::error_code error) noexcept
        : bytes_(bytes), error_(error) {}

    explicit operator bool() const noexcept { return !error_; }
    std::size_t bytes() const noexcept { return bytes_; }
    std::error_code error() const noexcept { return error_; }  // a zero code: all of it
    // bytes(); throws the error as std::system_error.
    std::size_t value() const {
        if (error_) detail::throw_error(error_);
        return bytes_;
    }

private:
    std::size_t bytes_ = 0;
    std::error_code error_;
};

}  // namespace weft
