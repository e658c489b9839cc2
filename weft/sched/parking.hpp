// parking: how one worker of a pool comes to sleep, and back, so that no work is left with all of
// them asleep.
//
// Its one idea: the steps of idle_set in the one order that is right, and beside them whether this
// worker searches. A launcher puts work first and then offers it; a worker announces itself
// first and then looks.
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

#include "weft/queue/idle_set.hpp"

namespace weft::detail {

class parking {
public:
    parking(idle_set& all, unsigned index) noexcept : all_(all), index_(index) {}
    parking(const parking&) = delete;
    parking& operator=(const parking&) = delete;

    // After something was put where any worker finds it: one that sleeps is woken, by
    // wake(its index), unless one searches, which will find it. Any thread.
    template <class Wake>
    static void offer(idle_set& all, Wake wake) noexcept {
        if (const unsigned i = all.claim(); i != idle_set::none) wake(i);
    }

    // The rest is the worker's. Whether it may look for the work of others.
    [[nodiscard]] bool begin_search() noexcept {
        return searching_ = searching_ || all_.begin_search();
    }
    // It has found something, there or elsewhere. False: it did not search. If no worker
    // searches any more, one must, for what was put while it did.
    template <class Wake>
    bool end_search(Wake wake) noexcept {
        if (!std::exchange(searching_, false)) return false;
        if (all_.end_search()) offer(all_, wake);
        return true;
    }

    // It has found nothing. False: there is something after all, as `has_work` says, and it is
    // awake. Else end_sleep() follows.
    template <class Look>
    [[nodiscard]] bool begin_sleep(Look has_work) noexcept {
        all_.announce(index_, std::exchange(searching_, false));
        // While another searches, what is there is its to find, or to see by such a look.
        if (all_.searching_count() != 0 || !has_work()) return true;
        end_sleep();
        return false;
    }
    // One that was claimed searches.
    void end_sleep() noexcept { searching_ = !all_.retract(index_); }

private:
    idle_set& all_;
    const unsigned index_;
    bool searching_ = false;
};

}  // namespace weft::detail
