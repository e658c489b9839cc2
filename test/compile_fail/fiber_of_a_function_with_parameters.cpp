// expect: callable_without_arguments
// As std::thread, but a fiber passes no arguments on.
#include "weft/fiber/fiber.hpp"

void use() {
#ifdef CONTROL
    weft::fiber f([] {});
    f.join();
#else
    weft::fiber f([](int) {});
    f.join();
#endif
}
