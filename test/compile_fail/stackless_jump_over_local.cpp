// expect: crosses initialization|cannot jump from switch statement
// A local that is initialised before a yield would come back without having been initialised.
#include "weft/stackless/stackless.hpp"

struct session : weft::stackless {
#ifdef CONTROL
    int length = 0;
#endif
    int operator()() {
        WEFT_REENTER(this) {
            WEFT_YIELD return 1;
#ifndef CONTROL
            int length = 2;
#endif
            length += 1;
            WEFT_YIELD return length;
        }
        return 0;
    }
};

int use(session& s) { return s(); }
