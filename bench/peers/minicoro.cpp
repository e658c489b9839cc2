// The one unit that holds minicoro.
#define MINICORO_IMPL
#include "bench/peers/minicoro_header.hpp"
