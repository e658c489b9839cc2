// proc_field: reads a value from a file of /proc, by the name before the value.
//
//   std::uint64_t places = 0;
//   if (ask_proc("/proc/self/status", "FDSize:", 10, places)) ...
//
// Limits: the field must be in the first kilobyte of the file.
#pragma once

#include <cstdint>

namespace weft::hook {

// False: the file or the name does not exist, or no file descriptor is free to open the file. Keeps
// errno.
bool ask_proc(const char* path, const char* name, int base, std::uint64_t& into) noexcept;

}  // namespace weft::hook
