// expect: duplicate case value
// The line is the state, so that each yield needs its own.
#include "weft/stackless/stackless.hpp"

struct session : weft::stackless {
    int operator()() {
        WEFT_REENTER(this) {
#ifdef CONTROL
            WEFT_YIELD return 1;
            WEFT_YIELD return 2;
#else
            // clang-format off
            WEFT_YIELD return 1; WEFT_YIELD return 2;
            // clang-format on
#endif
        }
        return 0;
    }
};

int use(session& s) { return s(); }
