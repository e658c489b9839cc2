// base: a value or an error.

#include "weft/base/result.hpp"

static weft::result<int> half(int n) {
    if (n % 2 != 0) return weft::failure(std::errc::invalid_argument);
    return n / 2;
}

int main(int argc, char**) { return half(argc * 2).value_or(0) == argc ? 0 : 1; }
