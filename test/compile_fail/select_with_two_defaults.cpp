// expect: a select has at most one
// Which of the two happens would be left to chance.
#include "weft/sync/select.hpp"

void use() {
#ifdef CONTROL
    weft::select(weft::otherwise([] {}));
#else
    weft::select(weft::otherwise([] {}), weft::otherwise([] {}));
#endif
}
