// parking: how a worker of a pool goes to sleep and wakes, so that no work is left while all
// workers sleep.
//
// Design: the steps of idle_set in the one correct order, together with the flag that says whether
// this worker searches. A launcher puts the work first and then offers it; a worker announces
// itself first and then checks for work.
//
//      worker                                            launcher
//
//      nothing found --> begin_sleep(look) --> sleep     put; offer(all, wake)
//                             | there is something
//      found: end_search <-- search <--- end_sleep() <-- woken
//
// Model: test/model/parking_test.cpp
#pragma once

#include <utility>

#include "weft/queue/detail/idle_set.hpp"

namespace weft::detail {

class parking {
public:
    parking(idle_set& all, unsigned index) noexcept : all_(all), index_(index) {}
    parking(const parking&) = delete;
    parking& operator=(const parking&) = delete;

    // Called after work was put where any worker finds it: wakes a sleeping worker by wake(its
    // index), unless a worker is searching, which will find the work. Any thread.
    template <class Wake>
    static void offer(idle_set& all, Wake wake) noexcept {
        if (const unsigned i = all.claim(); i != idle_set::none) wake(i);
    }

    // The rest is called by the worker. Whether it may search for the work of others.
    [[nodiscard]] bool begin_search() noexcept {
        return searching_ = searching_ || all_.begin_search();
    }
    // It has found work, by the search or elsewhere. False: it was not searching. If no worker
    // searches any more, one must, because of work that was put during this search.
    template <class Wake>
    bool end_search(Wake wake) noexcept {
        if (!std::exchange(searching_, false)) return false;
        if (all_.end_search()) offer(all_, wake);
        return true;
    }

    // It has found nothing. False: there is work after all, by `has_work`, and the worker is awake.
    // True: end_sleep() follows.
    template <class Look>
    [[nodiscard]] bool begin_sleep(Look has_work) noexcept {
        all_.announce(index_, std::exchange(searching_, false));
        // While another worker searches, that one finds what is there, or sees it by this same
        // check.
        if (all_.searching_count() != 0 || !has_work()) return true;
        end_sleep();
        return false;
    }
    // A worker that was claimed searches.
    void end_sleep() noexcept { searching_ = !all_.retract(index_); }

private:
    idle_set& all_;
    const unsigned index_;
    bool searching_ = false;
};

}  // namespace weft::detail
