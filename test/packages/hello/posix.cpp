// posix: fibers by the interface for C.

#include "weft/posix/weft.h"

static void* work(void* n) {
    ++*static_cast<int*>(n);
    return n;
}

static void* begin(void* n) {
    weft_t t;
    return weft_create(&t, nullptr, work, n) == 0 && weft_join(t, nullptr) == 0 ? n : nullptr;
}

int main() {
    int n = 0;
    return weft_run(begin, &n, nullptr) == 0 && n == 1 ? 0 : 1;
}
