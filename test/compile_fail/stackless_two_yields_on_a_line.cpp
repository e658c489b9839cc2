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
            WEFT_YIELD return 1; WEFT_YIELD return 2;
#endif
        }
        return 0;
    }
};

int use(session& s) { return s(); }
