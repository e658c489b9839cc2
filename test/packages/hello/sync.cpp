// sync: a mutex, between threads.

#include <mutex>

#include "weft/sync/mutex.hpp"

int main() {
    weft::mutex m;
    const std::lock_guard<weft::mutex> held(m);
    return m.try_lock() ? 1 : 0;
}
