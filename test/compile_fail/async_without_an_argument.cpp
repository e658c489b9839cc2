// expect: async: the function cannot be called with these arguments
// The function would have one parameter more.
#include "weft/future/async.hpp"

void use() {
#ifdef CONTROL
    weft::async([](int n) { return n; }, 5).get();
#else
    weft::async([](int n) { return n; }).get();
#endif
}
