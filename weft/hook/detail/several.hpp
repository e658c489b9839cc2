// several: how poll, select and epoll wait: for whichever of several descriptors is notified first.
//
//   several all(wanted_ones);
//   do { all.look(); n = query(); } while (n == 0 && all.until_one_is_ready(deadline, here) == 0);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/hook/detail/readiness.hpp"

namespace weft::hook {

// One of several descriptors, and the events awaited from it.
struct wanted {
    int fd;
    bool reads;
    bool writes;
    bool urgent = false;    // urgent data, or the end of both directions
    bool ended = false;     // the end of what is read
    bool is_asked = false;  // the query may find nothing where a call would: events are no answer

    // The flags of its entry that each wake the waiter.
    std::uint64_t flags() const noexcept {
        using weft::detail::io_entry;
        return (reads ? io_entry::readable : 0) | (writes ? io_entry::writable : 0) |
               (urgent ? io_entry::urgent : 0) | (ended ? io_entry::far_end : 0);
    }
};

// Waits for one of several, again and again; look() is before a query, until_one_is_ready() after
// one that found nothing.
class several {
public:
    // False: no memory.
    explicit several(std::span<const wanted> all) noexcept;
    several(const several&) = delete;
    several& operator=(const several&) = delete;
    ~several();

    explicit operator bool() const noexcept { return places_ != nullptr; }
    void look() noexcept;
    // `around`: as for until_ready().
    int until_one_is_ready(time_point deadline, const interruptible& around);

    struct place;

private:
    std::span<const wanted> all_;
    place* places_;
    std::size_t count_;
    bool lasts_ = false;  // it has waited for as long as fds are trusted
};

}  // namespace weft::hook
