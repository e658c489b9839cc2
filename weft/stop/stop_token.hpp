// stop_token: lets a party see whether it is asked to stop, and why.
//
// Its one idea: it is a pointer to a stop_source, copied freely and counted by nobody, and so it
// must not outlive the source. A token that was made from nothing can never be stopped.
//
//   while (!token.stop_requested()) work();
#pragma once

#include "weft/stop/stop_core.hpp"

namespace weft {

class stop_token {
public:
    constexpr stop_token() noexcept = default;

    bool stop_requested() const noexcept { return reason() != stop_reason::none; }

    // none as long as no stop is requested. Who sees another sees all that came before the request.
    stop_reason reason() const noexcept {
        return core_ != nullptr ? core_->reason() : stop_reason::none;
    }

    // Whether there is a source.
    bool stop_possible() const noexcept { return core_ != nullptr; }

    friend bool operator==(stop_token, stop_token) noexcept = default;

private:
    friend class stop_root;
    friend class stop_node;
    explicit stop_token(detail::stop_core& core) noexcept : core_(&core) {}

    detail::stop_core* core_ = nullptr;
};

}  // namespace weft
