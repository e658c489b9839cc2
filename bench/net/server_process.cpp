#include "bench/net/server_process.hpp"

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

namespace bench::net {

namespace {

bool take(const std::string& line, const char* key, std::uint64_t& value) {
    if (line.rfind(key, 0) != 0) return false;
    value = std::strtoull(line.c_str() + std::strlen(key), nullptr, 10);
    return true;
}

}  // namespace

bool look_at(pid_t pid, usage& found, std::string& why_not) {
    clockid_t clock{};
    timespec t{};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) {
        why_not = "there is no process " + std::to_string(pid);
        return false;
    }
    found.cpu_ns = static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
                   static_cast<std::uint64_t>(t.tv_nsec);
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    int lines = 0;
    for (std::string line; std::getline(status, line);) {
        lines += take(line, "VmRSS:", found.rss_kib) || take(line, "RssAnon:", found.anon_kib);
    }
    if (lines != 2) why_not = "/proc/" + std::to_string(pid) + "/status does not tell its memory";
    return lines == 2;
}

}  // namespace bench::net
