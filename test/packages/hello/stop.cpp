// stop: a request, and what is called by it.

#include "weft/stop/stop_callback.hpp"
#include "weft/stop/stop_source.hpp"

int main() {
    int calls = 0;
    weft::stop_source all;
    const weft::stop_callback note(all.get_token(), [&](weft::stop_reason) { ++calls; });
    all.request_stop();
    return calls == 1 ? 0 : 1;
}
