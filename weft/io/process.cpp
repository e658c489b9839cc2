#include "weft/io/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "weft/base/errno.hpp"
#include "weft/io/detail/c_string.hpp"
#include "weft/io/detail/child_exit_fd.hpp"
#include "weft/io/detail/child_start.hpp"
#include "weft/io/owned_number.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace detail {

// Invariants:
// P1  the child is reaped under the lock, and its process ID is not used afterwards: it may be
//     another's by then
// P2  a child that leads a group is not reaped before end(): its process ID is that of the group
struct process_core {
    ::pid_t id = 0;
    bool leads = false;
    duration grace{};
    descriptor ended;  // readable when the child has ended
    std::mutex lock;   // guards what follows
    std::optional<exit_status> status;
    bool lost = false;  // it is reaped: by other code, or after P2

    bool has_ended() noexcept {
        const std::lock_guard held(lock);
        return status || lost;
    }

    // For a child that has ended, or ends: `wait` is WNOHANG or zero.
    result<exit_status> reap(int wait = WNOHANG) noexcept {
        const std::lock_guard held(lock);
        if (!status && !lost) {
            ::siginfo_t of{};
            const int r = ask(of, wait | (leads ? WNOWAIT : 0));  // P2
            if (r == 0 && of.si_pid == 0) return failure(std::errc::resource_unavailable_try_again);
            if (r != 0 && get_errno() != ECHILD)
                return failure(std::error_code(get_errno(), std::system_category()));
            lost = r != 0;
            const bool exited = of.si_code == CLD_EXITED;
            if (!lost) status = exit_status{exited ? of.si_status : 0, exited ? 0 : of.si_status};
        }
        if (!status) return failure(std::errc::no_child_process);
        return *status;
    }

    result<void> kill(int number) noexcept {
        const std::lock_guard held(lock);
        if (status || lost) return failure(std::errc::no_such_process);  // P1
        return result_of(::kill(id, number));
    }
    result<void> kill_group(int number) noexcept {
        const std::lock_guard held(lock);
        if (!leads) return failure(std::errc::invalid_argument);
        ::siginfo_t of{};
        if (!lost && ask(of, WNOHANG | WNOWAIT) != 0) lost = get_errno() == ECHILD;
        if (lost) return failure(std::errc::no_such_process);  // P1
        return result_of(::kill(-id, number));
    }
    // For a leader that has ended: ends what is left of its group.
    void end_group() noexcept {
        static_cast<void>(kill_group(SIGKILL));
        const std::lock_guard held(lock);
        ::siginfo_t of{};
        if (!lost) ask(of, WNOHANG);
        lost = true;
    }

private:
    static result<void> result_of(int r) noexcept {
        if (r == 0) return {};
        return failure(std::error_code(get_errno(), std::system_category()));
    }
    int ask(::siginfo_t& of, int how) noexcept {
        int r;
        do {
            r = ::waitid(P_PID, static_cast<::id_t>(id), &of, WEXITED | how);
        } while (r != 0 && get_errno() == EINTR);
        return r;
    }
};

}  // namespace detail

namespace {

std::error_code code_of(int number) noexcept { return {number, std::system_category()}; }

// The paths where the program may be: the one that it names, or else in the directories of PATH.
std::vector<std::string> places_of(const std::string& program) {
    if (program.empty() || program.find('/') != program.npos) return {program};
    const char* const path = ::getenv("PATH");
    const std::string_view all = path != nullptr ? path : "/bin:/usr/bin";
    std::vector<std::string> places;
    for (std::size_t at = 0; at <= all.size();) {
        const std::size_t end = std::min(all.find(':', at), all.size());
        std::string place(all.substr(at, end - at));
        if (!place.empty()) place += '/';  // else the child's own directory
        places.push_back(place + program);
        at = end + 1;
    }
    return places;
}

// In the system's form.
std::vector<char*> pointers(const std::vector<std::string>& all) {
    std::vector<char*> p;
    for (const std::string& s : all) p.push_back(const_cast<char*>(s.c_str()));
    p.push_back(nullptr);
    return p;
}

// What a child starts with; owns the memory of the plan.
class beginning {
public:
    beginning(const std::vector<std::string>& command, const process_options& o)
        : places_(places_of(command.front())),
          place_pointers_(pointers(places_)),
          command_(pointers(command)) {
        plan_.places = place_pointers_.data();
        plan_.command = command_.data();
        if (o.environment) environment_ = pointers(*o.environment);
        plan_.environment = o.environment ? environment_.data() : ::environ;
        if (!o.working_directory.empty()) plan_.working_directory = o.working_directory.c_str();
        plan_.leads_session = o.group == child_group::session;
        plan_.takes_terminal = o.takes_terminal;
        if (o.group == child_group::own) plan_.group = 0;
        if (o.group > 0) plan_.group = o.group;
        add(RLIMIT_NOFILE, o.limits.files);
        add(RLIMIT_AS, o.limits.memory_bytes);
        add(RLIMIT_STACK, o.limits.stack_bytes);
        add(RLIMIT_FSIZE, o.limits.file_bytes);
        add(RLIMIT_CORE, o.limits.core_bytes);
        add(RLIMIT_CPU, o.limits.cpu_seconds);
        add(RLIMIT_NPROC, o.limits.processes);
        plan_.limits = limits_.data();
    }
    beginning(const beginning&) = delete;

    // Sets the child's stream 0, 1 or 2; `ours`: this program's end, if it is piped.
    std::error_code set(int stream, int what, owned_number& ours) noexcept {
        switch (what) {
            case child_io::inherited:
                return {};
            case child_io::discarded: {
                const owned_number null(::open("/dev/null", O_RDWR | O_CLOEXEC));
                return null ? give(stream, null.get()) : code_of(get_errno());
            }
            case child_io::as_output:
                plan_.err_is_out = true;
                return code_of(stream == 2 ? 0 : EINVAL);
            case child_io::piped: {
                int ends[2];
                if (::pipe2(ends, O_CLOEXEC) != 0) return code_of(get_errno());
                ours.reset(ends[stream == 0 ? 1 : 0]);
                const owned_number other(ends[stream == 0 ? 0 : 1]);
                return give(stream, other.get());
            }
            default:
                return give(stream, what);
        }
    }

    result<::pid_t> start() const noexcept { return detail::start_child(plan_); }

private:
    // By a duplicate, which is none of fds 0 to 2: those are about to be replaced.
    std::error_code give(int stream, int number) noexcept {
        theirs_[stream].reset(::fcntl(number, F_DUPFD_CLOEXEC, 3));
        if (!theirs_[stream]) return code_of(get_errno());
        plan_.streams[stream] = theirs_[stream].get();
        return {};
    }
    void add(int resource, const resource_limit& l) noexcept {
        if (l.is_set) limits_[plan_.limit_count++] = {resource, {l.soft, l.hard}};
    }

    std::vector<std::string> places_;
    std::vector<char*> place_pointers_;
    std::vector<char*> command_;
    std::vector<char*> environment_;
    owned_number theirs_[3];
    std::array<detail::child_limit, 7> limits_;
    detail::child_plan plan_;
};

// For this program's end, if there is one.
template <class End>
std::error_code adopt_end(owned_number& number, End& into) noexcept {
    if (!number) return {};
    auto end = End::adopt(number.release());
    if (!end) return end.error();
    into = *std::move(end);
    return {};
}

// For a child that has just started. If the descriptor cannot be had, the child is ended.
std::error_code watch_end(detail::process_core& core) noexcept {
    std::error_code error;
    const result<int> number = detail::child_exit_fd(core.id);
    if (number) {
        const detail::descriptor_ref ref = detail::descriptor_ref::adopt(*number, 0, error);
        if (ref) {
            core.ended = detail::descriptor(ref);
            return {};
        }
    } else {
        error = number.error();
    }
    ::kill(core.leads ? -core.id : core.id, SIGKILL);
    while (::waitpid(core.id, nullptr, 0) < 0 && get_errno() == EINTR) {
    }
    if (number) ::close(*number);
    return error;
}

int milliseconds_of(duration d) noexcept {
    if (d == no_timeout) return -1;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(d).count();
    return static_cast<int>(std::clamp<decltype(ms)>(ms, 0, INT_MAX));
}

}  // namespace

result<process> process::spawn(const std::vector<std::string>& command, const process_options& o) {
    if (command.empty() || !detail::are_c_strings(command) ||
        !detail::is_c_string(o.working_directory) ||
        (o.environment && !detail::are_c_strings(*o.environment)) ||
        (o.takes_terminal && o.group != child_group::session) || o.group == 0 ||
        o.group < child_group::session)
        return failure(std::errc::invalid_argument);
    process p;
    auto core = std::make_shared<detail::process_core>();
    core->grace = o.grace;
    core->leads = o.group == child_group::own || o.group == child_group::session;
    {
        beginning b(command, o);
        owned_number in;
        owned_number out;
        owned_number err;
        std::error_code error = b.set(0, o.in, in);
        if (!error) error = b.set(1, o.out, out);
        if (!error) error = b.set(2, o.err, err);
        if (!error) error = adopt_end(in, p.in_);
        if (!error) error = adopt_end(out, p.out_);
        if (!error) error = adopt_end(err, p.err_);
        if (error) return failure(error);
        const result<::pid_t> id = b.start();
        if (!id) return failure(id.error());
        core->id = *id;
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

process::wait_operation::wait_operation(detail::process_core* of, time_limit limit) noexcept
    : io_operation({}, 1, no_timeout, "the end of a process"), core_(of) {
    request_.what = detail::io_request::poll;
    request_.flags = POLLIN;
    if (of != nullptr) request_.of = of->ended.ref();
    set_limit(limit);
}

result<exit_status> process::wait_operation::take(const waiter* w, wait_status how) const noexcept {
    if (const transfer_result t = outcome(w, how); !t) return failure(t.error());
    return core_->reap();
}

process::wait_operation process::async_wait(time_limit limit) const noexcept {
    return {core_.get(), limit};
}

result<exit_status> process::wait(time_limit limit, std::source_location caller) const {
    auto op = async_wait(limit);
    return detail::block_for(op, caller);
}

result<void> process::kill(int number) const noexcept {
    if (core_ == nullptr) return failure(std::errc::no_such_process);
    return core_->kill(number);
}

result<void> process::kill_group(int number) const noexcept {
    if (core_ == nullptr) return failure(std::errc::no_such_process);
    return core_->kill_group(number);
}

void process::tell(int number) const noexcept {
    static_cast<void>(core_->leads ? core_->kill_group(number) : core_->kill(number));
}

// Suspends the caller's flow if that is possible, and otherwise blocks the thread: for a coroutine,
// also one that a fiber awaits, and for a flow that is destroyed with its executor.
bool process::await_exit(duration limit) const noexcept {
    const flow* const f = current_flow();
    const bool suspends = f != nullptr && f->can_suspend();
    if (suspends) {
        const shield from_our_own_stop;
        static_cast<void>(wait(limit));
    }
    ::pollfd p = {core_->ended.number(), POLLIN, 0};
    const int ms = suspends && limit != no_timeout ? 0 : milliseconds_of(limit);
    int n;
    do {
        n = ::poll(&p, 1, ms);
    } while (n < 0 && get_errno() == EINTR);
    return n > 0;
}

void process::end() noexcept {
    if (core_ == nullptr) return;
    if (!core_->has_ended()) {
        tell(SIGTERM);
        if (!await_exit(core_->grace)) {
            tell(SIGKILL);
            // If even that wait fails: the child was killed, and ends.
            if (!await_exit(no_timeout)) static_cast<void>(core_->reap(0));
        }
        static_cast<void>(core_->reap());
    }
    if (core_->leads) core_->end_group();
    core_.reset();
}

}  // namespace weft
