// poll: a value, and a thread that waits for it.

#include "weft/poll/poll_future.hpp"
#include "weft/wait/await.hpp"

int main() {
    weft::poll_future<int> f;
    f.set(4);
    return weft::sync_wait(f) == 4 ? 0 : 1;
}
