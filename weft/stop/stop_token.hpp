// stop_token: shows an agent whether a stop is requested, and why.
//
// Design: a token is a pointer to a stop_source. A default-constructed token can never be stopped.
//
// Limits: copies are free and are not counted, so a token must not outlive the source. A loop that
// only asks is not woken by a stop: a wait is, and a stop_callback.
//
//   while (!token.stop_requested()) work();
#pragma once

#include "weft/stop/detail/stop_core.hpp"

namespace weft {

class stop_token {
public:
    constexpr stop_token() noexcept = default;

    bool stop_requested() const noexcept { return reason() != stop_reason::none; }

    // none as long as no stop is requested. A caller that sees another reason sees all that came
    // before the request.
    stop_reason reason() const noexcept {
        return core_ != nullptr ? core_->reason() : stop_reason::none;
    }

    // Whether the token refers to a source.
    bool stop_possible() const noexcept { return core_ != nullptr; }

    friend bool operator==(stop_token, stop_token) noexcept = default;

private:
    friend class stop_root;
    friend class detail::stop_node;
    explicit stop_token(detail::stop_core& core) noexcept : core_(&core) {}

    detail::stop_core* core_ = nullptr;
};

}  // namespace weft
