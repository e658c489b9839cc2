// coctx.h: is included by programs for libco, which use nothing of it. A switch between two stacks
// is weft/context/context.hpp.
#ifndef WEFT_POSIX_LIBCO_COCTX_H
#define WEFT_POSIX_LIBCO_COCTX_H

#include <stdlib.h>

#endif
