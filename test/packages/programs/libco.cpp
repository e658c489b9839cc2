// The drop-in: a program that was written for libco.

#include "co_routine.h"

namespace {

void* count(void* number) {
    ++*static_cast<int*>(number);
    co_yield_ct();
    ++*static_cast<int*>(number);
    return nullptr;
}

}  // namespace

int main() {
    int number = 0;
    stCoRoutine_t* c = nullptr;
    co_create(&c, nullptr, count, &number);
    co_resume(c);
    co_resume(c);
    co_release(c);
    return number == 2 ? 0 : 1;
}
