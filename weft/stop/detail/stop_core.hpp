// stop_core: a stop source without its parent: the state, and the list of the nodes to notify.
//
//      stop_core                  stop_node          stop_node
//      +----------------+        +-----------+      +-----------+
//      | state, running |  +---->| function  |  +-->| function  |
//      | first ---------|--+     | next -----|--+   | next      |--> null
//      | request        |<-------| link      |<-----| link      |      link: the pointer that
//      | below          |        | core      |      | core      |            points here
//      +----------------+        +-----------+      +-----------+
//
// Design: a request calls the first node's function without the lock. The node stays in the list
// meanwhile, marked by `running`, so the thread that removes a node sees whether it must wait. A
// node without a function is a source that has this one for its parent: the request continues there
// and comes back. An explicit stack of cores replaces recursion, so a chain of any length is
// stopped on a small stack.
//
// Invariants, all under the lock:
// I1  running is set while the function of the first node is being called
// I2  request is set while a thread processes this list; no node is added then or ever again
// I3  a core is on the stack of its request exactly while `request` is set
// I4  a child is locked while its parent is locked, never the other way round
//
// Model: test/model/stop_core_test.cpp
#pragma once

#include "weft/stop/detail/stop_state.hpp"

namespace weft::detail {

class stop_node;

class stop_core {
public:
    stop_core() noexcept = default;
    stop_core(const stop_core&) = delete;
    stop_core& operator=(const stop_core&) = delete;

    // Waits for a request that another thread is processing.
    ~stop_core();

    stop_reason reason() const noexcept { return state_.reason(); }
    bool request_stop(stop_reason) noexcept;

    // False if a stop is requested: then the node is not added.
    [[nodiscard]] bool add(stop_node&) noexcept;

    // Afterwards the node's function neither runs nor will run, except if that function itself
    // calls remove().
    void remove(stop_node&) noexcept;

    // Walks the list; aborts if a link is wrong.
    void check() const noexcept;

private:
    struct request;

    [[nodiscard]] bool begin(request&) noexcept;
    void step(request&) noexcept;
    bool calls(const stop_node&) const noexcept;  // under the lock
    static void unlink(stop_node&) noexcept;      // under the lock

    mutable stop_state state_;
    bool running_ = false;
    stop_node* first_ = nullptr;
    request* request_ = nullptr;
    stop_core* below_ = nullptr;  // next on the request's stack; only the requesting thread uses it
};

}  // namespace weft::detail
