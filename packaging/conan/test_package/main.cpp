// The package is whole: a loop runs a fiber, which gives back what it returns.

#include "weft/weft.hpp"

int main() {
    return weft::run([] { return 0; });
}
