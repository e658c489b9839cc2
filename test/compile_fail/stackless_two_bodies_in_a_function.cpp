// expect: duplicate label|redefinition of label
// A yield leaves "the" body of its function.
#include "weft/stackless/stackless.hpp"

void run(weft::stackless& a, weft::stackless& b) {
    WEFT_REENTER(a) { WEFT_YIELD; }
#ifdef CONTROL
    static_cast<void>(b);
#else
    WEFT_REENTER(b) { WEFT_YIELD; }
#endif
}
