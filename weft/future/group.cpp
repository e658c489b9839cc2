#include "weft/future/detail/group.hpp"

#include <algorithm>
#include <memory>

namespace weft::detail {

when_core::when_core(future_core& c, std::size_t members_count, std::size_t needed_count)
    : calls(c),
      members(std::make_unique<member[]>(members_count)),
      count(members_count),
      needed(needed_count),
      left(members_count),
      first_failed(members_count) {
    winners.reserve(std::min(needed_count, members_count));
}

when_core::~when_core() {
    for (std::size_t i = 0; i < count; ++i) release(members[i].up);
}

void when_core::begin(future_core* const* ups) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        member& m = members[i];
        m.notify = [](listener& l) noexcept {
            auto& self = static_cast<member&>(l);
            self.of->calls.prompt(self);
        };
        m.of = this;
        m.up = ups[i];
        m.index = i;
    }
    static_cast<void>(calls.open());  // no stop is requested yet
    if (count == 0 || is_decided()) calls.prompt(multi_source_core::notified_cause);
    // The last member may end the group during this loop: the reference that is returned to the
    // caller keeps the group.
    for (std::size_t i = 0; i < count; ++i)
        if (!members[i].up->word.attach(members[i])) members[i].notify(members[i]);
}

when_core::member* when_core::in_order(multi_source_core::caller* last) noexcept {
    multi_source_core::caller* first = nullptr;
    while (last != nullptr) {
        multi_source_core::caller* const before = std::exchange(last->next, first);
        first = std::exchange(last, before);
    }
    return static_cast<member*>(first);
}

void when_core::decide(stop_reason why) noexcept {
    decided = true;
    for (std::size_t i = 0; i < count; ++i)
        if (!members[i].ended) request_stop(*members[i].up, why);
}

void when_core::cancel() noexcept {
    for (std::size_t i = 0; i < count; ++i)
        if (!members[i].ended) static_cast<void>(members[i].up->word.detach());
}

void when_core::fail(future_core& c) noexcept {
    if (const stop_reason asked = c.stops.asked(); asked != stop_reason::none)
        c.put_stopped(asked);
    else if (first_failed != count)
        c.take_failure_of(up(first_failed));
    else
        c.put_error(errc::too_few_results);
}

}  // namespace weft::detail
