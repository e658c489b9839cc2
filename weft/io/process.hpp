// process: a program that runs beside this one, as its child.
//
// Its one idea: the end of a child is waited for by a descriptor, like a byte of a socket; and the
// object owns the child as it owns a file: what it leaves, it has ended and reaped.
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
// A writer of much to a child that answers meanwhile reads in another fiber: both would wait.
//
// The child begins without a copy of this process (child_start.hpp). It has the three streams that
// it is given, and what else this program has opened without O_CLOEXEC (weft opens nothing so). It
// blocks no signals and does not ignore SIGPIPE, whatever this program does.
//
// The destructor asks a child that still runs to end (SIGTERM), ends it (SIGKILL) when the grace is
// over, and reaps it. So it waits: it suspends a fiber, and blocks a thread, also that of a task,
// which does better to wait before.
//
// Groups. What a child begins itself is the child's, unless the child leads a group: then it can be
// told a signal with all of its heirs, and the destructor ends them all. They are asked together;
// when the leader has ended, or its grace is over, those that are left are killed at once, for the
// end of a group cannot be waited for. What has left the group for one of its own stays.
//
//   {
//       auto job = weft::process::spawn({"make", "-j8"}, {.group = weft::child_group::own});
//       ...
//       if (job) use(job->kill_group(SIGINT));          // make and all that it has begun
//   }                                                   // none of them is left
//
// A leader's number is the group's as long as one of them is there: so the leader is reaped with
// the object and not by a wait, and the group can be told signals after it has ended. A child of
// another group than this program's is in the background of this program's terminal, and stops when
// it reads from it. How much a child may use: process_limits.hpp.
//
// Limits: a program that ignores SIGCHLD, or waits for any child it has, takes the status away:
// no_child_process; and a group that it has so lost is told no signal any more.
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

// What a stream of the child is: one of these, or a number of this program's.
struct child_io {
    enum : int {
        inherited = -1,  // as this program's
        piped = -2,      // see process::in, out, err
        discarded = -3,  // /dev/null
        as_output = -4,  // err only: the same as out
    };
};

// Which group of processes the child is in: one of these, or a number: the id of a child that leads
// one and is not gone.
struct child_group {
    enum : ::pid_t {
        inherited = -1,  // this program's
        own = -2,        // it leads one
        session = -3,    // it leads one, in a session of its own, which has no terminal yet
    };
};

struct process_options {
    int in = child_io::inherited;
    int out = child_io::inherited;
    int err = child_io::inherited;
    std::optional<std::vector<std::string>> environment = {};  // "NAME=value"; none: this one's
    std::string folder = {};                                   // empty: this one's
    duration grace = std::chrono::seconds(5);                  // of the destructor
    ::pid_t group = child_group::inherited;
    bool takes_terminal = false;  // of a session's leader: its stream 0 is the session's terminal
    process_limits limits = {};
};

struct exit_status {
    int code = 0;    // what it returned
    int signal = 0;  // or what has ended it

    bool ok() const noexcept { return code == 0 && signal == 0; }
};

namespace detail {
struct process_core;
}

class process {
    using place_t = std::source_location;

public:
    class waiting;

    process() noexcept = default;  // none
    process(process&&) noexcept = default;
    process& operator=(process&& other) noexcept;
    ~process() { end(); }

    // `command`: the program, which is looked for in PATH if it names no folder, and its arguments.
    // invalid_argument: it is empty, or a text has a zero byte within, also of the options; or a
    // terminal is taken by a child without a session. operation_not_permitted: there is no such
    // group in this session, or the terminal is another session's.
    static result<process> spawn(const std::vector<std::string>& command,
                                 const process_options& = {});

    explicit operator bool() const noexcept { return core_ != nullptr; }
    ::pid_t id() const noexcept;

    // The other ends of what was piped; none for what was not. They may be moved out.
    pipe_writer& in() noexcept { return in_; }
    pipe_reader& out() noexcept { return out_; }
    pipe_reader& err() noexcept { return err_; }

    // Until it has ended. Any number of parties may wait, at any time; all get the same. The object
    // stays where it is meanwhile.
    [[nodiscard]] waiting async_wait(time_point deadline = never) const noexcept;
    result<exit_status> wait(time_point deadline = never, place_t place = place_t::current()) const;

    // Sends it a signal. no_such_process: it has ended, and that was waited for. Any thread.
    result<void> kill(int number = SIGTERM) const noexcept;
    // The same to all of the group that it leads, also after it has ended. invalid_argument: it
    // leads none.
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

class process::waiting final : public detail::io_operation {
public:
    waiting(detail::process_core* of, time_point deadline) noexcept;
    result<exit_status> take(const waiter* w, wait_status how) const noexcept;

private:
    detail::process_core* core_;
};

}  // namespace weft
