// manager: a fiber by its number.

#include "weft/manager/task_manager.hpp"
#include "weft/run/run.hpp"

int main() {
    bool done = false;
    weft::run([&] {
        weft::task_manager<> m;
        const auto id = m.spawn([] {}, {.name = "login"});
        done = id && m.join(*id).has_value();
    });
    return done ? 0 : 1;
}
