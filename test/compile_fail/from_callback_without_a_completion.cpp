// expect: callable_with_a_completion
// Nothing could ever end the wait.
#include "weft/wait/from_callback.hpp"

void use() {
#ifdef CONTROL
    static_cast<void>(weft::await_callback<int>([](weft::completion<int> done) { done(5); }));
#else
    static_cast<void>(weft::await_callback<int>([] {}));
#endif
}
