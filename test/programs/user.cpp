// A foreign object for elf_notes_test.py, compiled with -fcf-protection=full: it switches inline,
// and its source has no code for shadow stacks.
#include "weft/coroutine/coroutine.hpp"

int main() {
    weft::coroutine<int()> c([] {
        weft::this_coroutine::yield<int()>(1);
        return 2;
    });
    return c.resume() == 1 && c.resume() == 2 ? 0 : 1;
}
