// Windows hands a fault to the program on the stack on which it was, and a stack that has
// overflowed has no room for that: the guard stops the program, without a report. The system's
// own stacks have a reserve there, which it keeps for them alone.
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include "weft/stack/overflow.hpp"

namespace weft {

void install_overflow_report(describe_overflow) noexcept {}
void prepare_thread_for_overflow_report() noexcept {}

}  // namespace weft

#endif
