// server_process: what a process on this machine has used so far, told from outside.
//
// Processor time is that of all its threads, the ended ones too, in nanoseconds: what utime + stime
// of /proc/PID/stat say in hundredths of a second.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace bench::net {

struct usage {
    std::uint64_t cpu_ns = 0;
    std::uint64_t rss_kib = 0;   // all that is resident
    std::uint64_t anon_kib = 0;  // of that, memory that is no file's: the program's own
};

// False, with a reason, if there is no such process.
[[nodiscard]] bool look_at(pid_t pid, usage& found, std::string& why_not);

}  // namespace bench::net
