// weft/hook/detail/parking_line.hpp, the queue of which the parking lot is made, under the
// interleavings of a few agents: fibers (a waiter each), threads in a futex, wakers, deadlines,
// stops and the ends of frames. The awaited object is one word, like a mutex of libc's.
#include <gtest/gtest.h>

#include <array>
#include <mutex>

#include "model/actor.hpp"
#include "model/names.hpp"
#include "model/thread_mutex.hpp"
#include "model/turnstile.hpp"
#include "weft/hook/detail/parking_line.hpp"

namespace {

using namespace model::names;
using model::fate;
using weft::hook::parked;
using weft::hook::parked_list;
using weft::hook::parking_line;

constexpr auto acquire = std::memory_order_acquire;
constexpr auto seq_cst = std::memory_order_seq_cst;

// A word that is 1 while it is owned, and whose ownership is handed off directly; a caller that
// finds the word free takes it.
class parked_lock {
public:
    struct node : parked {
        explicit node(parked_lock& g) : of(g) {}
        parked_lock& of;
        bool given = false;
    };

    explicit parked_lock(bool is_free) : held_(is_free ? 0 : 1) {}

    bool take(weft::waiter& w, node& n) {
        n.fiber = &w;
        n.address = this;
        w.enlist("a lock", this, &n, [](weft::waiter& me) noexcept {
            auto& self = me.operation<node>();
            static_cast<void>(self.of.line_.leave(self));
        });
        return line_.enter(n, false, [this] { return !pass(); });
    }
    void give() {
        parked_list claimed;
        {
            const std::lock_guard held(line_);
            if (line_.claim(this, 1, 1, claimed) != 0)
                static_cast<node&>(*claimed.first).given = true;
            else
                held_.store(0, seq_cst);
        }
        parking_line::wake_all(claimed);
    }
    bool is_at_rest() { return held_.load() == 0 && !line_.may_hold_any(); }

private:
    bool pass() { return held_.exchange(1, acquire) == 0; }

    parking_line line_;
    weft::atomic<std::uint32_t> held_;
};

TEST(parking_lot, loses_no_wake_and_wakes_no_waiter_twice) {
    expect_right(model::pass<parked_lock>(2, 2, 3), bounded);
    expect_right(model::pass<parked_lock>(3, 1, 3), bounded);
}

TEST(parking_lot, has_one_winner_of_unpark_and_cancellation) {
    for (fate f : {fate::deadline, fate::stop, fate::both})
        expect_right(model::pass_beside<parked_lock>(f, false, 6), bounded);
}

TEST(parking_lot, does_not_touch_a_destroyed_frame) {
    expect_right(model::pass_beside<parked_lock>(fate::end, false, 6), bounded);
    expect_right(model::pass_beside<parked_lock>(fate::end, true, 2), bounded);
}

TEST(parking_lot, grants_to_next_waiter_when_the_first_cancels) {
    for (fate f : {fate::deadline, fate::both})
        expect_right(model::pass_beside<parked_lock>(f, true, 3), bounded);
}

enum class manner { as_told, looks_before_it_enters, tells_before_the_store };

// A fiber and a thread wait until a word is set; the setter checks without the lock whether any
// waiter is there.
report wait_for_a_word(manner how) {
    return explore(
        [how](execution& run) {
            model::time_has_passed.store(false);
            parking_line line;
            weft::atomic<std::uint32_t> word{0};
            model::var<int> data{0};
            model::actor fiber;
            const auto unset = [&] { return word.load(seq_cst) == 0; };
            const auto may_wait = [&] { return how == manner::looks_before_it_enters || unset(); };
            run.thread("fiber", [&] {
                parked p;
                p.address = &word;
                if (how == manner::looks_before_it_enters && !unset()) return;
                static_cast<void>(fiber.wait([&](weft::waiter& w) {
                    p.fiber = &w;
                    return line.enter(p, false, may_wait);
                }));
                model::require(data.read() == 1, "what came before the wake is seen");
            });
            run.thread("thread", [&] {
                parked p;
                p.address = &word;
                if (how == manner::looks_before_it_enters && !unset()) return;
                if (line.enter(p, false, may_wait))
                    model::require(line.sleep(p, weft::never), "it has no deadline");
                model::require(data.read() == 1, "what came before the wake is seen");
            });
            run.thread("waker", [&] {
                const auto wake = [&] {
                    if (!line.may_hold_any()) return;
                    parked_list claimed;
                    {
                        const std::lock_guard held(line);
                        line.claim(&word, ~0u, 2, claimed);
                    }
                    parking_line::wake_all(claimed);
                };
                data.write(1);
                if (how == manner::tells_before_the_store) wake();
                word.store(1, seq_cst);
                if (how != manner::tells_before_the_store) wake();
            });
            run.go();
            fiber.check();
            model::require(!line.may_hold_any(), "nobody is left in the line");
        },
        {.deviations = 3});
}

TEST(parking_lot, loses_no_wake_if_the_store_precedes_the_check) {
    expect_right(wait_for_a_word(manner::as_told), bounded);
    expect_found(wait_for_a_word(manner::looks_before_it_enters), "deadlock");
    expect_found(wait_for_a_word(manner::tells_before_the_store), "deadlock");
}

// Its node is stored in its frame: a waker that has removed the node reaches it before the frame
// ends.
TEST(parking_lot, releases_a_thread_when_deadline_and_wake_race) {
    expect_right(explore(
                     [](execution& run) {
                         model::time_has_passed.store(false);
                         parking_line line;
                         model::var<int> frame{0};
                         weft::atomic<int> woken{0};
                         run.thread("sleeper", [&] {
                             parked p;
                             p.address = &line;
                             frame.write(1);
                             if (!line.enter(p, false, [] { return true; })) return;
                             if (line.sleep(p, weft::time_point{}))
                                 model::require(p.was_unparked, "it says how it was");
                             else
                                 model::require(!p.was_unparked, "or that it was not");
                             frame.write(2);
                         });
                         run.thread("waker", [&] {
                             parked_list claimed;
                             {
                                 const std::lock_guard held(line);
                                 line.claim(&line, ~0u, 1, claimed);
                             }
                             if (claimed.first != nullptr) static_cast<void>(frame.read());
                             parking_line::wake_all(claimed);
                         });
                         run.thread("clock", [] { model::let_time_pass(); });
                         run.go();
                         model::require(!line.may_hold_any(), "nobody is left in the line");
                     },
                     {.deviations = 4}),
                 bounded);
}

}  // namespace
