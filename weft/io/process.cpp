#include "weft/io/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <mutex>

#include "weft/io/c_string.hpp"
#include "weft/io/exit_descriptor.hpp"
#include "weft/io/owned_number.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace detail {

// Invariants:
// P1  the child is reaped under the lock, and its number used for nothing afterwards: it may be
//     another's by then
struct process_core {
    ::pid_t id = 0;
    duration grace{};
    descriptor ended;  // can be read when it has ended
    std::mutex lock;   // guards what follows
    std::optional<exit_status> status;
    bool lost = false;  // other code has reaped it

    bool is_reaped() noexcept {
        const std::lock_guard held(lock);
        return status || lost;
    }

    // Of one that has ended, or ends: `wait` is WNOHANG or zero.
    result<exit_status> reap(int wait = WNOHANG) noexcept {
        const std::lock_guard held(lock);
        if (!status && !lost) {
            ::siginfo_t of{};
            int r;
            do {
                r = ::waitid(P_PID, static_cast<::id_t>(id), &of, WEXITED | wait);
            } while (r != 0 && errno == EINTR);
            if (r == 0 && of.si_pid == 0) return failure(std::errc::resource_unavailable_try_again);
            lost = r != 0;
            const bool exited = of.si_code == CLD_EXITED;
            if (!lost) status = exit_status{exited ? of.si_status : 0, exited ? 0 : of.si_status};
        }
        if (lost) return failure(std::errc::no_child_process);
        return *status;
    }
};

}  // namespace detail

namespace {

std::error_code code_of(int number) noexcept { return {number, std::system_category()}; }

// What posix_spawn is told.
class spawning {
public:
    spawning() noexcept {
        ::posix_spawn_file_actions_init(&files_);
        ::posix_spawnattr_init(&signals_);
        ::sigset_t some;
        ::sigemptyset(&some);
        ::posix_spawnattr_setsigmask(&signals_, &some);
        ::sigaddset(&some, SIGPIPE);
        ::posix_spawnattr_setsigdefault(&signals_, &some);
        ::posix_spawnattr_setflags(&signals_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    spawning(const spawning&) = delete;
    ~spawning() {
        ::posix_spawn_file_actions_destroy(&files_);
        ::posix_spawnattr_destroy(&signals_);
    }

    // What the child has as its stream 0, 1 or 2, in this order; `ours`: our end, if it is piped.
    std::error_code set(int stream, int what, owned_number& ours) noexcept {
        switch (what) {
            case child_io::inherited:
                return {};
            case child_io::discarded:
                return code_of(
                    ::posix_spawn_file_actions_addopen(&files_, stream, "/dev/null", O_RDWR, 0));
            case child_io::as_output:
                if (stream != 2) return code_of(EINVAL);
                return code_of(::posix_spawn_file_actions_adddup2(&files_, 1, 2));
            case child_io::piped: {
                int ends[2];
                if (::pipe2(ends, O_CLOEXEC) != 0) return code_of(errno);
                ours.reset(ends[stream == 0 ? 1 : 0]);
                owned_number other;
                other.reset(ends[stream == 0 ? 0 : 1]);
                return give(stream, other.get());
            }
            default:
                return give(stream, what);
        }
    }

    std::error_code set_folder(const std::string& folder) noexcept {
        if (folder.empty()) return {};
        return code_of(::posix_spawn_file_actions_addchdir_np(&files_, folder.c_str()));
    }

    std::error_code spawn(::pid_t& id, char* const* command, char* const* environment) noexcept {
        return code_of(::posix_spawnp(&id, command[0], &files_, &signals_, command, environment));
    }

private:
    // By a number of its own, which is none of 0 to 2: those are about to be others.
    std::error_code give(int stream, int number) noexcept {
        theirs_[stream].reset(::fcntl(number, F_DUPFD_CLOEXEC, 3));
        if (theirs_[stream].get() < 0) return code_of(errno);
        return code_of(::posix_spawn_file_actions_adddup2(&files_, theirs_[stream].get(), stream));
    }

    ::posix_spawn_file_actions_t files_;
    ::posix_spawnattr_t signals_;
    owned_number theirs_[3];
};

// As the system takes it.
std::vector<char*> pointers(const std::vector<std::string>& all) {
    std::vector<char*> p;
    for (const std::string& s : all) p.push_back(const_cast<char*>(s.c_str()));
    p.push_back(nullptr);
    return p;
}

// Of our end, if there is one.
template <class End>
std::error_code adopt_end(owned_number& number, End& into) noexcept {
    if (!number) return {};
    auto end = End::adopt(number.release());
    if (!end) return end.error();
    into = *std::move(end);
    return {};
}

// Of a child that has just begun; if there is none, there is no child any more.
std::error_code watch_end(detail::process_core& core) noexcept {
    std::error_code error;
    const result<int> number = detail::exit_descriptor(core.id);
    if (number) {
        const descriptor_ref ref = descriptor_ref::adopt(*number, 0, error);
        if (ref) {
            core.ended = descriptor(ref);
            return {};
        }
    } else {
        error = number.error();
    }
    ::kill(core.id, SIGKILL);
    while (::waitpid(core.id, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (number) ::close(*number);
    return error;
}

int milliseconds_of(duration d) noexcept {
    if (d == duration::max()) return -1;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(d).count();
    return static_cast<int>(std::clamp<decltype(ms)>(ms, 0, INT_MAX));
}

}  // namespace

result<process> process::spawn(const std::vector<std::string>& command, const process_options& o) {
    if (command.empty() || !detail::are_c_strings(command) || !detail::is_c_string(o.folder) ||
        (o.environment && !detail::are_c_strings(*o.environment)))
        return failure(std::errc::invalid_argument);
    process p;
    auto core = std::make_shared<detail::process_core>();
    core->grace = o.grace;
    {
        spawning s;
        owned_number in;
        owned_number out;
        owned_number err;
        std::error_code error = s.set(0, o.in, in);
        if (!error) error = s.set(1, o.out, out);
        if (!error) error = s.set(2, o.err, err);
        if (!error) error = s.set_folder(o.folder);
        if (!error) error = adopt_end(in, p.in_);
        if (!error) error = adopt_end(out, p.out_);
        if (!error) error = adopt_end(err, p.err_);
        std::vector<char*> environment;
        if (o.environment) environment = pointers(*o.environment);
        if (!error)
            error = s.spawn(core->id, pointers(command).data(),
                            o.environment ? environment.data() : ::environ);
        if (error) return failure(error);
    }
    if (auto error = watch_end(*core)) return failure(error);
    p.core_ = std::move(core);
    return p;
}

process& process::operator=(process&& other) noexcept {
    if (this != &other) {
        end();
        core_ = std::move(other.core_);
        in_ = std::move(other.in_);
        out_ = std::move(other.out_);
        err_ = std::move(other.err_);
    }
    return *this;
}

::pid_t process::id() const noexcept { return core_ != nullptr ? core_->id : 0; }

process::waiting::waiting(detail::process_core* of, time_point deadline) noexcept
    : io_operation({}, 1, duration::max(), "the end of a process"), core_(of) {
    request_.what = detail::io_request::poll;
    request_.flags = POLLIN;
    if (of != nullptr) request_.of = of->ended.ref();
    set_deadline(deadline);
}

result<exit_status> process::waiting::take(const waiter* w, wait_status how) const noexcept {
    if (const transferred t = outcome(w, how); t.error) return failure(t.error);
    return core_->reap();
}

process::waiting process::async_wait(time_point deadline) const noexcept {
    return {core_.get(), deadline};
}

result<exit_status> process::wait(time_point deadline, place_t place) const {
    auto op = async_wait(deadline);
    return detail::block_for(op, place);
}

result<void> process::kill(int number) const noexcept {
    if (core_ == nullptr) return failure(std::errc::no_such_process);
    const std::lock_guard held(core_->lock);
    if (core_->status || core_->lost) return failure(std::errc::no_such_process);  // P1
    if (::kill(core_->id, number) == 0) return {};
    return failure(code_of(errno));
}

// Suspends a party that can be suspended, and else blocks its thread: a coroutine, also one that a
// fiber awaits, and what is destroyed with its executor.
bool process::await_exit(duration limit) const noexcept {
    const flow* const f = current_flow();
    const bool suspends =
        f != nullptr && f->kind->suspend != nullptr && f->waiting == nullptr && !f->ending;
    if (suspends) {
        const shield from_our_own_stop;
        static_cast<void>(wait(after(now(), limit)));
    }
    ::pollfd p = {core_->ended.number(), POLLIN, 0};
    const int ms = suspends && limit != duration::max() ? 0 : milliseconds_of(limit);
    int n;
    do {
        n = ::poll(&p, 1, ms);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

void process::end() noexcept {
    if (core_ == nullptr) return;
    if (!core_->is_reaped()) {
        static_cast<void>(kill(SIGTERM));
        if (!await_exit(core_->grace)) {
            static_cast<void>(kill(SIGKILL));
            // Where not even that can be waited for: it is killed, and ends.
            if (!await_exit(duration::max())) static_cast<void>(core_->reap(0));
        }
        static_cast<void>(core_->reap());
    }
    core_.reset();
}

}  // namespace weft
