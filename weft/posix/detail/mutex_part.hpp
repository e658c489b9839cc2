// mutex_of: the mutex behind a weft_mutex_t, for the mutexes and the conditions of weft.h.
#pragma once

#include "weft/posix/detail/in_place.hpp"
#include "weft/posix/weft.h"
#include "weft/sync/mutex.hpp"

namespace weft::detail {

// Null: the mutex was destroyed.
inline mutex* mutex_of(weft_mutex_t& m) noexcept { return in_place<mutex>(m); }

}  // namespace weft::detail
