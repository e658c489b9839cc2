#include "weft/future/group.hpp"

#include <algorithm>

namespace weft::detail {

group_part::group_part(future_core& c, std::size_t members_count, std::size_t needed_count)
    : calls(c),
      members(std::make_unique<member[]>(members_count)),
      count(members_count),
      needed(needed_count),
      left(members_count),
      first_failed(members_count) {
    winners.reserve(std::min(needed_count, members_count));
}

group_part::~group_part() {
    for (std::size_t i = 0; i < count; ++i) let_go(members[i].up);
}

void group_part::begin(future_core* const* ups) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        member& m = members[i];
        m.told = [](listener& l) noexcept {
            auto& self = static_cast<member&>(l);
            self.of->calls.prompt(self);
        };
        m.of = this;
        m.up = ups[i];
        m.index = i;
    }
    static_cast<void>(calls.open());  // no stop is requested yet
    if (count == 0 || is_decided()) calls.prompt(prompted::told_cause);
    // The last member may end the group during this loop: the reference that is returned to the
    // caller keeps the group.
    for (std::size_t i = 0; i < count; ++i)
        if (!members[i].up->word.attach(members[i])) members[i].told(members[i]);
}

group_part::member* group_part::in_order(prompted::caller* last) noexcept {
    prompted::caller* first = nullptr;
    while (last != nullptr) {
        prompted::caller* const before = std::exchange(last->next, first);
        first = std::exchange(last, before);
    }
    return static_cast<member*>(first);
}

void group_part::decide(stop_reason why) noexcept {
    decided = true;
    for (std::size_t i = 0; i < count; ++i)
        if (!members[i].ended) request_stop(*members[i].up, why);
}

void group_part::withdraw() noexcept {
    for (std::size_t i = 0; i < count; ++i)
        if (!members[i].ended) static_cast<void>(members[i].up->word.detach());
}

void group_part::fail(future_core& c) noexcept {
    if (const stop_reason asked = c.stops.asked(); asked != stop_reason::none)
        c.put_stopped(asked);
    else if (first_failed != count)
        c.take_failure_of(up(first_failed));
    else
        c.put_error(errc::unsatisfied);
}

}  // namespace weft::detail
