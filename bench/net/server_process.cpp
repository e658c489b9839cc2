#include "bench/net/server_process.hpp"

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace bench::net {

namespace {

bool take(const std::string& line, const char* key, std::uint64_t& value) {
    if (line.rfind(key, 0) != 0) return false;
    value = std::strtoull(line.c_str() + std::strlen(key), nullptr, 10);
    return true;
}

// The second number of each thread's schedstat.
std::uint64_t ready_ns(pid_t pid) {
    std::uint64_t sum = 0;
    std::error_code none;
    for (const auto& thread :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", none)) {
        std::ifstream schedstat(thread.path() / "schedstat");
        std::uint64_t ran = 0, ready = 0;
        if (schedstat >> ran >> ready) sum += ready;
    }
    return sum;
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
    found.ready_ns = ready_ns(pid);
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    int lines = 0;
    for (std::string line; std::getline(status, line);) {
        lines += take(line, "VmRSS:", found.rss_kib) || take(line, "RssAnon:", found.anon_kib);
    }
    if (lines != 2) why_not = "/proc/" + std::to_string(pid) + "/status does not tell its memory";
    return lines == 2;
}

}  // namespace bench::net
