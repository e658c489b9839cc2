#include "weft/io/given_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace weft {
namespace {

// Parses a variable; -1: it is not an integer of at least zero.
int number_in(std::string_view text) noexcept {
    int n = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    return error == std::errc{} && end == text.data() + text.size() && n >= 0 ? n : -1;
}

result<std::vector<given_descriptor>> look_at_environment() {
    constexpr int first = 3;
    std::vector<given_descriptor> all;
    const char* const pid = std::getenv("LISTEN_PID");
    const char* const count = std::getenv("LISTEN_FDS");
    const char* const names = std::getenv("LISTEN_FDNAMES");
    if (pid == nullptr || count == nullptr) return all;
    const int process = number_in(pid);
    const int n = number_in(count);
    if (process <= 0 || n < 0) return failure(std::errc::invalid_argument);
    if (process != ::getpid()) return all;
    std::string_view rest = names != nullptr ? names : "";
    for (int number = first; number - first != n; ++number) {
        // A count that is too large ends at the first fd that is not open.
        if (::fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
            return failure(std::error_code(errno, std::system_category()));
        const std::string_view name = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        all.push_back({number, std::string(name.empty() ? "unknown" : name)});
    }
    return all;
}

}  // namespace

result<std::vector<given_descriptor>> given_descriptors(environment e) {
    result<std::vector<given_descriptor>> all = look_at_environment();
    if (e == environment::unset)
        for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
    return all;
}

}  // namespace weft
