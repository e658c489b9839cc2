// proc_field: a number that the system tells in a file of /proc, by the name before it.
//
//   std::uint64_t places = 0;
//   if (ask_proc("/proc/self/status", "FDSize:", 10, places)) ...
//
// Limits: it is to stand in the first kilobyte of the file.
#pragma once

#include <cstdint>

namespace weft::hook {

// False: there is no such file or no such name, or no number is left to open the file by. Keeps
// errno.
bool ask_proc(const char* path, const char* name, int base, std::uint64_t& into) noexcept;

}  // namespace weft::hook
