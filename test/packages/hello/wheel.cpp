// wheel: a deadline, and a time at which it has come.

#include "weft/wheel/wheel.hpp"

int main() {
    weft::wheel w;
    weft::wheel_node node;
    w.add(node, 30'000);
    int due = 0;
    w.advance(w.next(), [&](weft::wheel_node&) { ++due; });
    return due == 1 ? 0 : 1;
}
