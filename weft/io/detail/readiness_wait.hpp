// readiness_wait: what the drivers that sleep in one call of the system for all their descriptors
// (epoll, kqueue) have in common: the limit of that sleep, and the delivery of its events.
//
// Model: none, a driver sleeps on its own thread alone.
#pragma once

#include <time.h>

#include <cstdint>

#include "weft/base/clock.hpp"
#include "weft/base/detail/timespec.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/io/detail/wakeup_fd.hpp"

namespace weft::detail {

// Sleeps by collect(limit) until it returns true, which says that the sleep was not ended by a
// signal or a refusal alone. A null limit is none.
template <class Collect>
void collect_until(time_point until, wakeup_fd& wake, const Collect& collect) noexcept {
    bool slept_well;
    do {
        ::timespec limit{};
        const bool asleep = wake.begin_sleep();
        if (asleep && until != never) limit = timespec_of(time_left(steady_now(), until));
        slept_well = collect(asleep && until == never ? nullptr : &limit);
    } while (!slept_well);
}

// With many descriptors, the entries and waiters are no longer in the caches, and claiming a waiter
// stalls everything behind it. So all entries are prefetched first, and then the waiters.
template <int Most>
class event_batch {
public:
    void add(int number, std::uint32_t generation, std::uint64_t flags) noexcept {
        io_entry* const e = find_entry(number);
        if (e == nullptr) return;
        prefetch(e);
        events_[count_++] = {e, generation, flags};
    }
    void deliver(io_driver* from) noexcept {
        for (int i = 0; i < count_; ++i) events_[i].entry->fetch_waiting(events_[i].flags);
        for (int i = 0; i < count_; ++i)
            events_[i].entry->notify(events_[i].generation, events_[i].flags, from);
    }

private:
    struct event {
        io_entry* entry;
        std::uint32_t generation;
        std::uint64_t flags;
    };

    event events_[Most];
    int count_ = 0;
};

}  // namespace weft::detail
