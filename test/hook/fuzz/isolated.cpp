#include "test/hook/fuzz/isolated.hpp"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "test/hook/fuzz/sides.hpp"
#include "weft/hook/hook.hpp"

namespace weft::testing::fuzz {

void begin_child() {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The IPC objects of a killed child end with it, where the system allows this.
    ::unshare(CLONE_NEWIPC);
    hook::enable_in_child();
    begin_process();
}

int end_child(int pid) {
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ::kill(-pid, SIGKILL);  // what it had started meanwhile
    return status;
}

isolated_outcome isolated(const std::function<std::string()>& work,
                          std::chrono::milliseconds limit) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const ::pid_t child = ::fork();
    if (child < 0) std::abort();
    if (child == 0) {
        ::close(ends[0]);
        begin_child();
        const std::string text = work() + '\0';  // the zero marks a complete text
        for (std::size_t at = 0; at < text.size();) {
            const ::ssize_t n = ::write(ends[1], text.data() + at, text.size() - at);
            if (n <= 0) break;
            at += static_cast<std::size_t>(n);
        }
        ::_exit(0);
    }
    ::setpgid(child, child);
    ::close(ends[1]);
    isolated_outcome out;
    const auto until = std::chrono::steady_clock::now() + limit;
    for (;;) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        ::pollfd p = {ends[0], POLLIN, 0};
        if (left.count() <= 0 || ::poll(&p, 1, static_cast<int>(left.count())) == 0) {
            out.how = isolated_outcome::hung;
            break;
        }
        char room[4096];
        const ::ssize_t n = ::read(ends[0], room, sizeof room);
        if (n <= 0) break;
        out.text.append(room, static_cast<std::size_t>(n));
        if (out.text.back() == '\0') break;
    }
    ::close(ends[0]);
    const int status = end_child(child);
    const bool is_whole = !out.text.empty() && out.text.back() == '\0';
    if (out.how == isolated_outcome::ended && !is_whole) {
        out.how = isolated_outcome::crashed;
        out.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
    if (is_whole) out.text.pop_back();
    return out;
}

}  // namespace weft::testing::fuzz
