// server_process: the resources that a process on this machine has used so far, read from outside.
//
// Processor time is that of all threads of the process, the ended ones too, in nanoseconds: utime +
// stime of /proc/PID/stat have it in hundredths of a second. The time that the threads were ready
// and had no core, because another process was on it, comes from the scheduler's figures of each.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace bench::net {

struct usage {
    std::uint64_t cpu_ns = 0;
    std::uint64_t ready_ns = 0;  // of the threads that exist; 0 if the system does not report it
    std::uint64_t rss_kib = 0;   // all that is resident
    std::uint64_t anon_kib = 0;  // of that, memory that is no file's: the program's own
};

// False, with a reason, if there is no such process.
[[nodiscard]] bool look_at(pid_t pid, usage& found, std::string& why_not);

}  // namespace bench::net
