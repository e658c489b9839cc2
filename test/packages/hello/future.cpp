// future: a promise, and what happens then.

#include "weft/future/promise.hpp"

int main() {
    weft::promise<int> p;
    auto f = p.get_future().then([](int n) { return n + 1; });
    p.set_value(1);
    return f.get() == 2 ? 0 : 1;
}
