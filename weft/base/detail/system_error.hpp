// throw_system_error: for constructors, which have no other way to say what the system refused.
#pragma once

#include <system_error>

#include "weft/base/assert.hpp"

namespace weft::detail {

[[noreturn]] inline void throw_system_error(int number, const char* what) {
#if WEFT_EXCEPTIONS
    throw std::system_error(number, std::system_category(), what);
#else
    static_cast<void>(number);
    fail(what);
#endif
}

}  // namespace weft::detail
