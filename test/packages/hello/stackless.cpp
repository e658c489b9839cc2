// stackless: a coroutine of one int.

#include "weft/stackless/stackless.hpp"

struct counter : weft::stackless {
    int n = 0;
    int operator()() {
        WEFT_REENTER(this) {
            for (n = 0; n < 2; ++n) WEFT_YIELD return n;
        }
        return -1;
    }
};

int main() {
    counter c;
    return c() + c() == 1 && c() == -1 ? 0 : 1;
}
