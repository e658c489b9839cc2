// expect: task_or_callable_without_arguments
// There is nothing that a manager could call or await.
#include "weft/manager/task_manager.hpp"

void use() {
#ifdef CONTROL
    weft::task_manager<> m;
    static_cast<void>(m.spawn([] {}));
#else
    weft::task_manager<> m;
    static_cast<void>(m.spawn(5));
#endif
}
