// expect: constructible_from
// A pointer makes no number.
#include "weft/future/promise.hpp"

void use() {
#ifdef CONTROL
    weft::promise<int> p;
    p.set_value(5);
#else
    weft::promise<int> p;
    p.set_value("five");
#endif
}
