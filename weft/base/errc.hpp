// errc: the outcomes that are weft's own.
//
// Design: what the system has a name for is std::errc: operation_canceled for a stop, timed_out for
// a deadline, resource_unavailable_try_again for what a try_ would have to wait for.
//
// Limits: an errc says what has happened, and neither in which call nor to which object.
//
//   if (auto item = channel.recv(); !item && item.error() == weft::errc::closed) finish();
#pragma once

#include <system_error>

namespace weft {

enum class errc {
    closed = 1,       // it was closed, and what it held has been received
    lagged,           // a receiver of a broadcast was too slow, and has missed items
    unexpected_eof,   // the peer has ended before all that was asked for had come
    broken_promise,   // what was to give a value was destroyed, and had given none
    too_few_results,  // fewer results than asked for satisfied the predicate
};

const std::error_category& category() noexcept;

inline std::error_code make_error_code(errc e) noexcept {
    return {static_cast<int>(e), category()};
}

}  // namespace weft

template <>
struct std::is_error_code_enum<weft::errc> : std::true_type {};
