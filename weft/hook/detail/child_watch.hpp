// child_watch: waits until a child has a state to report that no descriptor reports: any child, a
// child of a group, a child that was stopped or continued.
//
// Design: a thread of weft's own waits in waitid(WNOWAIT), which takes nothing away, for all fibers
// that wait for the same. SIGCHLD therefore remains the program's, and no fiber polls. A fiber that
// is stopped leaves the thread where it is: the next fiber with the same wait finds it there.
//
//      fiber ---> waitid(WNOHANG): nothing ---> until_child(...) ---> the same again
//                                                  |       ^
//      thread of the watch: waitid(WNOWAIT) -------+-------+  wakes all, and is over
//
// Limits: one thread is kept for each kind of wait that a fiber has ever started and that did not
// end. __WNOTHREAD is not supported here: its children are those of the calling thread.
//
// Model: none, the watches are in one list under one lock, and each has a wait_queue (its model).
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include "weft/hook/detail/interruption.hpp"

namespace weft::hook {

// Until a child of waitid(by, id, ..., options) may have a state to report: 0, or an errno value:
// ECANCELED and similar for a stop, EAGAIN if no thread can be had for it. `around`: as for
// until_ready(). In a fiber.
int until_child(idtype_t by, id_t id, int options, const interruptible& around);

}  // namespace weft::hook
