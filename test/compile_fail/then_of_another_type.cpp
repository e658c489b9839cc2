// expect: the function takes the value, nothing, or the future
// The value is no pointer.
#include "weft/future/async.hpp"

void use() {
#ifdef CONTROL
    weft::async([] { return 5; }).then([](int n) { return n; }).get();
#else
    weft::async([] { return 5; }).then([](const char* s) { return s; }).get();
#endif
}
