// escape: makes the compiler assume that other code reads and writes what p points to.
//
// Not benchmark::DoNotOptimize: its version in Debian 12 (1.7) lets GCC change an lvalue argument.
#pragma once

namespace bench {

inline void escape(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

}  // namespace bench
