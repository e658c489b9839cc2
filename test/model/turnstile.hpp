// The laws of an object that one agent owns at a time, and for which the others are queued: take it
// if it is free, or else enlist; against: claim the first waiter, or else set it free.
//
// Design: a Thing over a queue is a few lines, written like the queue's own header; the laws are
// the same for all. A lost wake is a deadlock; two owners at once race; a waiter that has left, and
// is still queued, is found at the end.
//
//   struct thing {
//       struct node;                       // made from the thing; has `bool given`, under the lock
//       explicit thing(bool is_free);
//       bool take(weft::waiter&, node&);   // start(): false when it was free
//       void give();                       // to the first in the queue, or free
//       bool is_at_rest();                 // after all threads: free, and the queue is empty
//   };
#pragma once

#include <array>
#include <cstddef>

#include "model/actor.hpp"

namespace model {

template <class Thing>
class turnstile {
public:
    explicit turnstile(bool is_free) : thing_(is_free) {}

    // The p-th waiter takes the thing, unless the fate ends the wait, and releases it.
    void pass(std::size_t p, fate f = fate::none) {
        typename Thing::node n(thing_);
        const auto how = parties_[p].wait([&](weft::waiter& w) { return thing_.take(w, n); }, f);
        const bool has_it = how == weft::wait_status::woken || n.given;
        if (has_it) leave();
        require(has_it || f != fate::none, "nothing else ends the wait");
    }
    // Called by the owner.
    void leave() {
        inside_.write(inside_.read() + 1);
        thing_.give();
    }
    void check() {
        for (actor& p : parties_) p.check();
        require(thing_.is_at_rest(), "it is free, and nobody stands in line");
    }

private:
    Thing thing_;
    var<int> inside_;
    std::array<actor, 3> parties_;
};

// Each comes so often and goes through.
template <class Thing>
report pass(std::size_t parties, int times, unsigned deviations) {
    return explore(
        [=](execution& run) {
            turnstile<Thing> t(true);
            for (std::size_t p = 0; p < parties; ++p)
                run.thread("agent", [&, p] {
                    for (int n = 0; n < times; ++n) t.pass(p);
                });
            run.go();
            t.check();
        },
        {.deviations = deviations});
}

// One thread owns the thing and releases it while another, whose wait is ended, is queued; a third
// may be queued, too.
template <class Thing>
report pass_beside(fate f, bool a_third, unsigned deviations) {
    return explore(
        [=](execution& run) {
            turnstile<Thing> t(false);
            run.thread("gives", [&] { t.leave(); });
            run.thread("fated", [&] { t.pass(0, f); });
            if (a_third) run.thread("waits", [&] { t.pass(1); });
            run.go();
            t.check();
        },
        {.deviations = deviations});
}

}  // namespace model
