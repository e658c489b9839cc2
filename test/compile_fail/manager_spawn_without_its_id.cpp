// expect: maker_of_ids_without_spawn_as
// The manager has no id for it: spawn_as takes one.
#include "weft/manager/task_manager.hpp"

void use() {
#ifdef CONTROL
    weft::task_manager<int, weft::user_ids> m;
    static_cast<void>(m.spawn_as(5, [] {}));
#else
    weft::task_manager<int, weft::user_ids> m;
    static_cast<void>(m.spawn([] {}));
#endif
}
