// expect: a nursery spawns a function without parameters .weft.fiber.nursery.hpp
// What can be spawned is declared beside its type.
#include "weft/wait/nursery.hpp"

#ifdef CONTROL
#include "weft/fiber/nursery.hpp"
#endif

void use() {
    weft::nursery n;
    n.spawn([] {});
}
