// expect: the function of on_recv takes an item of the channel
// The item would be lost.
#include "weft/sync/select.hpp"

void use() {
#ifdef CONTROL
    weft::channel<int> c(1);
    weft::select(weft::on_recv(c, [](int) {}));
#else
    weft::channel<int> c(1);
    weft::select(weft::on_recv(c, [] {}));
#endif
}
