// c_string: whether a text can be given to the system as a C string.
//
// A std::string counts its bytes; a C string ends at its first zero. A text with a zero within
// would be another one to the system than to the program that has checked it ("/srv/a\0.txt"), so
// what takes one refuses it: invalid_argument.
//
//   if (!detail::is_c_string(path)) return failure(std::errc::invalid_argument);
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace weft::detail {

inline bool is_c_string(std::string_view text) noexcept { return text.find('\0') == text.npos; }

// Each of several.
inline bool are_c_strings(std::initializer_list<std::string_view> all) noexcept {
    return std::ranges::all_of(all, is_c_string);
}
inline bool are_c_strings(const std::vector<std::string>& all) noexcept {
    return std::ranges::all_of(all, is_c_string);
}

}  // namespace weft::detail
