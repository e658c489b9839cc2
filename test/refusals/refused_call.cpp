#include "test/refusals/refused_call.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

namespace weft::testing::refusals {
namespace {

// Returns the listener; zero where none was requested; -1.
int filter(long call, std::uint32_t verdict, unsigned flags) noexcept {
    std::array<::sock_filter, 4> steps = {{
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(::seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(call)},
        {BPF_RET | BPF_K, 0, 0, verdict},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    }};
    const ::sock_fprog all = {static_cast<unsigned short>(steps.size()), steps.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &all));
}

void answer(int listener, int error, std::int64_t nth, std::atomic<std::uint64_t>& made) noexcept {
    for (;;) {
        ::seccomp_notif asked;
        std::memset(&asked, 0, sizeof asked);
        if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
            if (errno == EINTR || errno == ENOENT) continue;
            return;
        }
        ::seccomp_notif_resp said{};
        said.id = asked.id;
        const auto n = static_cast<std::int64_t>(made.fetch_add(1) + 1);
        if (n == nth || (nth < 0 && n >= -nth))
            said.error = -error;
        else
            said.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        static_cast<void>(::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &said));
    }
}

}  // namespace

bool refuse(long call, int error, std::int64_t nth, std::atomic<std::uint64_t>& made) {
    if (nth == 0)
        return filter(call, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error), 0) == 0;
    std::atomic<int> listener{0};
    std::atomic<bool> taken{false};
    std::thread([&listener, &taken, error, nth, &made] {
        ::sigset_t every;
        ::sigfillset(&every);
        ::pthread_sigmask(SIG_SETMASK, &every, nullptr);
        listener.wait(0);
        const int mine = listener.load();
        taken.store(true);  // the caller's frame ends after it
        if (mine > 0) answer(mine, error, nth, made);
    }).detach();
    // Until it has the descriptor the caller makes none of the calls: futex is in no table.
    const int n = filter(call, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    listener.store(n > 0 ? n : -1);
    listener.notify_one();
    while (!taken.load()) {
    }
    return n > 0;
}

}  // namespace weft::testing::refusals
