// shield: while it stands, no stop and no deadline of a scope ends a wait of the flow.
//
// For cleanup that must wait. The stop is not lost: the first wait after the shield finds it.
//
//   { weft::shield s; connection.send_goodbye(); }
//
// On a plain thread it is the thread's own waits that it holds for. In what an executor runs in no
// flow nothing ends a wait, and there is nothing to do.
#pragma once

#include <source_location>

#include "weft/wait/thread_host.hpp"

namespace weft {

class shield {
public:
    explicit shield(std::source_location place = std::source_location::current()) noexcept
        : flow_(detail::flow_here()) {
        if (flow_ != nullptr) flow_->raise_shield(place);
    }
    shield(const shield&) = delete;
    shield& operator=(const shield&) = delete;
    ~shield() {
        if (flow_ != nullptr) flow_->lower_shield();
    }

private:
    flow* const flow_;
};

}  // namespace weft
