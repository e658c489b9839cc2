#include "test/clients/program.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "weft/base/clock.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 2ms;
constexpr auto patience = 60s;

// The user that runs the server: tests of root need another user for it. Null: the user stays the
// same.
const ::passwd* other_user(const std::string& name) {
    if (name.empty() || ::getuid() != 0) return nullptr;
    const ::passwd* const who = ::getpwnam(name.c_str());
    if (who == nullptr) throw std::runtime_error("there is no user " + name);
    return who;
}

void give_to(const ::passwd& who, const folder& f) {
    EXPECT_EQ(::chown(f.path().c_str(), who.pw_uid, who.pw_gid), 0);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(f.path()))
        EXPECT_EQ(::lchown(entry.path().c_str(), who.pw_uid, who.pw_gid), 0);
}

// In the child: it makes system calls and nothing else, as this process may have threads.
[[noreturn]] void become(const program_options& o, char* const* arguments, const ::passwd* who,
                         const char* where, int log, ::pid_t parent) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    // The request for a signal would be lost with a change of user: it comes after that.
    const bool changed =
        who == nullptr ||
        (::setgroups(0, nullptr) == 0 && ::setgid(who->pw_gid) == 0 && ::setuid(who->pw_uid) == 0);
    if (changed && ::chdir(where) == 0 && ::prctl(PR_SET_PDEATHSIG, o.stop_signal) == 0 &&
        ::getppid() == parent)
        ::execvp(arguments[0], arguments);
    ::_exit(127);
}

::pid_t begin(const folder& in, const program_options& o) {
    const ::passwd* const who = other_user(o.user);
    if (who != nullptr) give_to(*who, in);
    std::vector<char*> arguments;
    for (const std::string& s : o.command) arguments.push_back(const_cast<char*>(s.c_str()));
    arguments.push_back(nullptr);
    const int log = ::open((in / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const ::pid_t parent = ::getpid();
    const ::pid_t id = ::fork();
    if (id == 0) become(o, arguments.data(), who, in.path().c_str(), log, parent);
    ::close(log);
    if (id < 0) throw std::runtime_error("no process for " + o.command.front());
    return id;
}

[[noreturn]] void give_up(const folder& in, const program_options& o, const std::string& why) {
    throw std::runtime_error(o.command.front() + " " + why + ":\n" + in.read("log"));
}

}  // namespace

void program::start() {
    if (!ended()) return;
    id_ = begin(folder_, options_);
    const time_point end = after(steady_now(), patience);
    for (int begun = 1; !answers_();) {
        if (steady_now() > end) give_up(folder_, options_, "does not answer");
        std::this_thread::sleep_for(between_looks);
        if (!ended()) continue;
        // Children that a killed program started may still be about to exit.
        if (begun++ == 10) give_up(folder_, options_, "has ended");
        std::this_thread::sleep_for(50 * between_looks);
        id_ = begin(folder_, options_);
    }
}

void program::stop() {
    if (id_ == 0) return;
    send(SIGCONT);
    send(options_.stop_signal);
    for (const time_point end = after(steady_now(), patience); !ended();) {
        if (steady_now() > end) send(SIGKILL);
        std::this_thread::sleep_for(between_looks);
    }
}

void program::kill() {
    send(SIGKILL);
    EXPECT_EQ(::waitpid(id_, nullptr, 0), id_);
    id_ = 0;
}

void program::send(int number) {
    if (id_ != 0) {
        EXPECT_EQ(::kill(id_, number), 0);
    }
}

bool program::ended() {
    if (id_ != 0 && ::waitpid(id_, nullptr, WNOHANG) == id_) id_ = 0;
    return id_ == 0;
}

void run_to_end(const folder& in, const program_options& options) {
    int status = 0;
    const ::pid_t id = begin(in, options);
    if (::waitpid(id, &status, 0) != id || status != 0) give_up(in, options, "has failed");
}

}  // namespace weft::testing
