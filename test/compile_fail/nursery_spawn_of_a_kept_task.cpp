// expect: a task that is moved into it
// The nursery owns the tasks that it runs.
#include "weft/task/task_handle.hpp"

void use(weft::nursery& n, weft::task<>& t) {
#ifdef CONTROL
    n.spawn(std::move(t));
#else
    n.spawn(t);
#endif
}
