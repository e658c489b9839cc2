// What each file that includes weft refers to, see platform.hpp.

#include "weft/base/platform.hpp"

const char WEFT_SANITIZED_LIKE = 0;
const char WEFT_SWITCHED_LIKE = 0;
