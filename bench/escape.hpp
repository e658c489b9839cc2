// escape: makes the compiler believe that others read and write what p points to.
//
// Not benchmark::DoNotOptimize: its version in Debian 12 (1.7) lets GCC change an lvalue argument.
#pragma once

namespace bench {

inline void escape(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

}  // namespace bench
