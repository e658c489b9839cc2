// expect: a select takes cases: on_recv
// An operation is not a case.
#include "weft/sync/select.hpp"

void use() {
#ifdef CONTROL
    weft::channel<int> c(1);
    weft::select(weft::on_recv(c, [](int) {}));
#else
    weft::channel<int> c(1);
    weft::select(c.async_recv());
#endif
}
