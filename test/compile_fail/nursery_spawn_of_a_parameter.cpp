// expect: a nursery spawns a function without parameters
// Nothing would give the function its argument.
#include "weft/fiber/nursery.hpp"

void use() {
    weft::nursery n;
#ifdef CONTROL
    n.spawn([] { return 5; });
#else
    n.spawn([](int number) { return number; });
#endif
}
