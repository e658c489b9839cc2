// child_watch: waits until a child has a state to report that no descriptor reports: any child, one
// of a group, one that was stopped or goes on.
//
// Design: a thread of weft's own waits in waitid(WNOWAIT), which takes nothing away, for all fibers
// that wait for the same. SIGCHLD is therefore the program's, no fiber asks again and again, and a
// fiber that is stopped leaves the thread where it is: the next that wants the same finds it there.
//
//      fiber ---> waitid(WNOHANG): nothing ---> until_child(...) ---> the same again
//                                                  |       ^
//      thread of the watch: waitid(WNOWAIT) -------+-------+  wakes all, and is over
//
// Limits: one thread is kept for each kind of wait that a fiber has ever been in and that did not
// end. __WNOTHREAD is no kind of these: its children are those of the calling thread.
//
// Model: none, the watches are in one list under one lock, and each has a wait_queue (its model).
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

namespace weft::hook {

// Until a child of waitid(by, id, ..., options) may have a state to report: 0, or an error number:
// ECANCELED and similar for a stop, EAGAIN if no thread can be had for it. In a fiber.
int until_child(idtype_t by, id_t id, int options);

}  // namespace weft::hook
