// Functions that are compiled with exceptions in a program that otherwise is not: their frames may
// have clean-ups that an unwinder can find.
#pragma once

namespace weft {

void yield_with_something_to_clean_up();
void yield_with_nothing_to_clean_up();

}  // namespace weft
