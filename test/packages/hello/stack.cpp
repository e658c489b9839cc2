// stack: one from a pool, and back.

#include "weft/stack/stack_pool.hpp"

int main() {
    weft::stack_pool<> pool(64 * 1024);
    pool.release(pool.acquire());
}
