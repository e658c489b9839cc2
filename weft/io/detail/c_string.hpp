// c_string: whether a text can be passed to the system as a C string.
//
// A std::string has a length; a C string ends at its first zero byte. The system would read a text
// with a zero inside it as another text than the program that checked it ("/srv/a\0.txt"), so calls
// that take a text refuse such a one: invalid_argument.
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

// Whether all of them are.
inline bool are_c_strings(std::initializer_list<std::string_view> all) noexcept {
    return std::ranges::all_of(all, is_c_string);
}
inline bool are_c_strings(const std::vector<std::string>& all) noexcept {
    return std::ranges::all_of(all, is_c_string);
}

}  // namespace weft::detail
