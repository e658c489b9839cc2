// shield: while it exists, no stop and no deadline of a scope ends a wait of the flow.
//
// Design: for cleanup that must wait. The stop is not lost: the first wait after the shield finds
// it.
//
// Limits: on a plain thread it protects the thread's own waits. In code that an executor runs
// outside any flow, nothing ends a wait, and a shield does nothing.
//
//   { weft::shield s; connection.send_goodbye(); }
#pragma once

#include <source_location>

#include "weft/wait/detail/thread_executor.hpp"

namespace weft {

class shield {
public:
    explicit shield(std::source_location caller = std::source_location::current()) noexcept
        : flow_(detail::flow_here()) {
        if (flow_ != nullptr) flow_->raise_shield(caller);
    }
    shield(const shield&) = delete;
    shield& operator=(const shield&) = delete;
    // A stop or a deadline ends the waits of the flow again.
    ~shield() {
        if (flow_ != nullptr) flow_->lower_shield();
    }

private:
    flow* const flow_;
};

}  // namespace weft
