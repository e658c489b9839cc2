// expect: crosses initialization|cannot jump from switch statement
// The statement of a yield is done when the object is resumed, and cannot be resumed itself.
#include "weft/stackless/stackless.hpp"

struct session : weft::stackless {
    int n = 0;
    int operator()() {
        WEFT_REENTER(this) {
            WEFT_YIELD {
                n = 1;
#ifndef CONTROL
                WEFT_YIELD return 1;
#endif
                n = 2;
            }
        }
        return n;
    }
};

int use(session& s) { return s(); }
