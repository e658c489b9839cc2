// process: a program that runs beside this one, as its child.
//
// Design: the end of a child is waited for through a descriptor, like a byte of a socket; and the
// object owns the child as it owns a file: after the destructor the child has ended and is reaped.
//
// To write much to a child that answers meanwhile, read in another fiber: otherwise both would
// wait.
//
// The child starts without a copy of this process (child_start.hpp). It has the three streams that
// it is given, and whatever else this program has opened without O_CLOEXEC (weft opens nothing so).
// It blocks no signals and does not ignore SIGPIPE, whatever this program does.
//
// The destructor asks a child that still runs to end (SIGTERM), kills it (SIGKILL) when the grace
// period is over, and reaps it. So the destructor waits: it suspends a fiber, and blocks a thread,
// also that of a task; in a task, wait before.
//
// Groups. The object does not manage what the child starts, unless the child leads a group: then a
// signal can be sent to it with all of its descendants, and the destructor ends them all. They are
// asked together; when the leader has ended, or its grace period is over, those that are left are
// killed at once, because the end of a group cannot be waited for. A process that has left the
// group for one of its own stays.
//
// A leader's process ID is the group's as long as one member exists: so the leader is reaped with
// the object and not by a wait, and signals can be sent to the group after the leader has ended. A
// child of another group than this program's is in the background of this program's terminal, and
// stops when it reads from it. How much a child may use: process_limits.hpp.
//
// Limits: a program that ignores SIGCHLD, or waits for any child it has, takes the status away:
// no_child_process; and a group that is lost in this way gets no signal any more.
//
//   using weft::child_io;
//   auto p = weft::process::spawn({"sort", "-u"}, {.in = child_io::piped, .out = child_io::piped});
//   if (!p) return p.error();                           // no_such_file_or_directory, ...
//   if (!p->in().write_all(text)) ...                   // it has ended, or closed its input
//   p->in().close();
//   auto n = p->out().read(buffer);
//   auto status = p->wait();                            // or co_await p->async_wait()
//   if (status && status->ok()) ...
//
//   {
//       auto job = weft::process::spawn({"make", "-j8"}, {.group = weft::child_group::own});
//       ...
//       if (job) use(job->kill_group(SIGINT));          // make and all that it has begun
//   }                                                   // none of them is left
//
// Model: none, one lock guards all that is shared.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "weft/io/pipe.hpp"
#include "weft/io/process_limits.hpp"

namespace weft {

// A stream of the child: one of these, or an fd of this program.
struct child_io {
    enum : int {
        inherited = -1,  // this program's
        piped = -2,      // see process::in, out, err
        discarded = -3,  // /dev/null
        as_output = -4,  // err only: the same as out
    };
};

// The process group of the child: one of these, or the ID of a child that leads a group and is not
// reaped.
struct child_group {
    enum : ::pid_t {
        inherited = -1,  // this program's
        own = -2,        // the child leads one
        session = -3,    // the child leads one, in a new session, which has no terminal yet
    };
};

// What a child has of its own, and what it inherits.
struct process_options {
    int in = child_io::inherited;
    int out = child_io::inherited;
    int err = child_io::inherited;
    std::optional<std::vector<std::string>> environment = {};  // "NAME=value"; none: this program's
    std::string working_directory = {};                        // empty: this program's
    ::pid_t group = child_group::inherited;
    bool takes_terminal = false;  // for a session's leader: stream 0 is the session's terminal
    duration grace = std::chrono::seconds(5);  // of the destructor
    process_limits limits = {};
};

// How a child has ended.
struct exit_status {
    int code = 0;    // the exit code
    int signal = 0;  // or the signal that has ended it

    bool ok() const noexcept { return code == 0 && signal == 0; }
};

namespace detail {
struct process_core;
}

class process {
public:
    class wait_operation;

    process() noexcept = default;  // none
    process(process&&) noexcept = default;
    process& operator=(process&& other) noexcept;
    // Ends the child as the head says, waits for that, and reaps it.
    ~process() { end(); }

    // `command`: the program, which is looked up in PATH if its name has no slash, and its
    // arguments. invalid_argument: it is empty, or a text has a zero byte in it, also one of the
    // options; or a terminal is taken by a child without a session. operation_not_permitted: there
    // is no such group in this session, or the terminal is another session's.
    static result<process> spawn(const std::vector<std::string>& command,
                                 const process_options& = {});

    explicit operator bool() const noexcept { return core_ != nullptr; }
    ::pid_t id() const noexcept;

    // This program's ends of the piped streams; empty for the others. They may be moved out.
    pipe_writer& in() noexcept { return in_; }
    pipe_reader& out() noexcept { return out_; }
    pipe_reader& err() noexcept { return err_; }

    // Waits until it has ended. Callers may wait concurrently, at any time; all get the same
    // status. The object stays at its address meanwhile.
    [[nodiscard]] wait_operation async_wait(time_limit limit = {}) const noexcept;
    result<exit_status> wait(time_limit limit = {},
                             std::source_location caller = std::source_location::current()) const;

    // Sends it a signal. no_such_process: it has ended, and was waited for. Any thread.
    result<void> kill(int number = SIGTERM) const noexcept;
    // The same to all of the group that it leads, also after it has ended. invalid_argument: it
    // leads no group.
    result<void> kill_group(int number = SIGTERM) const noexcept;

private:
    void end() noexcept;
    void tell(int number) const noexcept;
    bool await_exit(duration limit) const noexcept;

    std::shared_ptr<detail::process_core> core_;
    pipe_writer in_;
    pipe_reader out_;
    pipe_reader err_;
};

class process::wait_operation final : public detail::io_operation {
public:
    wait_operation(detail::process_core* of, time_limit limit) noexcept;
    result<exit_status> take(const waiter* w, wait_status how) const noexcept;

private:
    detail::process_core* core_;
};

}  // namespace weft
