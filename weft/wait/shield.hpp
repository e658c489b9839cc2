// shield: while it stands, no stop and no deadline of a scope ends a wait of the flow.
//
// For cleanup that must wait. The stop is not lost: the first wait after the shield finds it.
//
//   { weft::shield s; connection.send_goodbye(); }
#pragma once

#include "weft/wait/flow.hpp"

namespace weft {

class shield {
public:
    shield() noexcept : flow_(current_flow()) {
        if (flow_ != nullptr) ++flow_->shields;
    }
    shield(const shield&) = delete;
    shield& operator=(const shield&) = delete;
    ~shield() {
        if (flow_ != nullptr) --flow_->shields;
    }

private:
    flow* const flow_;
};

}  // namespace weft
