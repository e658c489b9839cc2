// The opt-in is in the program, although nothing but this question refers to it.

#include "weft/unwind/fast_unwind/fast_unwind.hpp"

int main() { return weft::fast_unwind::is_linked() ? 0 : 1; }
