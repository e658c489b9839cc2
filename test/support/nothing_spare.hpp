// nothing_spare: releases what other tests of this process have left unused.
#pragma once

#include "weft/base/give_back.hpp"

namespace weft::testing {

// A time point from which on no keeper has anything to spare.
inline time_point nothing_spare() noexcept {
    time_point now = steady_now();
    while (detail::give_back(now) != never) now += detail::give_back_period;
    return now;
}

}  // namespace weft::testing
