// context: there and back, on memory of this program.

#include "weft/context/context.hpp"

#include <cstddef>
#include <cstdlib>

static void enter(weft::context* from, weft::context* self, void* word) {
    ++*static_cast<int*>(word);
    weft::switch_to(*self, *from, word);
}
static void end(weft::context*) noexcept { std::abort(); }

int main() {
    alignas(16) static std::byte stack[64 * 1024];
    static const weft::entry_point point = {enter, end, end};
    weft::context here, there;
    weft::make_context(there, stack + sizeof stack, point);
    int n = 0;
    weft::switch_to(here, there, &n);
    return n == 1 ? 0 : 1;
}
