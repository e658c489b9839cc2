// nothing_spare: releases what other tests of this process have left unused.
#pragma once

#include "weft/base/detail/release_unused.hpp"

namespace weft::testing {

// A time point from which on no keeper has anything to spare.
inline time_point nothing_spare() noexcept {
    time_point now = steady_now();
    while (detail::release_unused(now) != never) now += detail::unused_period;
    return now;
}

}  // namespace weft::testing
