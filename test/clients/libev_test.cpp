// libev, as it comes: a loop for each agent.
#include <ev.h>

#include <list>
#include <memory>

#include "test/clients/loop_laws.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::call_back;
using weft::testing::callback;
using weft::testing::freed_by;

class libev_loop {
public:
    void after(double seconds, callback f) {
        ::ev_timer& t = timers_.emplace_back();
        ev_timer_init(&t, &called<::ev_timer>, seconds, 0.);
        t.data = &callbacks_.emplace_back(std::move(f));
        ::ev_timer_start(loop_.get(), &t);
    }
    void when_readable(int fd, callback f) {
        ::ev_io& w = watched_.emplace_back();
        ev_io_init(&w, &called<::ev_io>, fd, EV_READ);
        w.data = &callbacks_.emplace_back(std::move(f));
        ::ev_io_start(loop_.get(), &w);
    }
    void run() { ::ev_run(loop_.get(), 0); }
    void end() { ::ev_break(loop_.get(), EVBREAK_ALL); }

private:
    template <class Watcher>
    static void called(struct ev_loop*, Watcher* w, int) {
        call_back(w->data);
    }

    std::list<callback> callbacks_;
    std::list<::ev_timer> timers_;
    std::list<::ev_io> watched_;
    const std::unique_ptr<struct ev_loop, freed_by<::ev_loop_destroy>> loop_{
        ::ev_loop_new(EVFLAG_AUTO)};
};

class libev : public weft::testing::client_test {};
INSTANTIATE_FOR_ALL(libev);
class libev_in : public libev {};
INSTANTIATE_FOR_FIBERS(libev_in);

TEST_P(libev, is_answered) { weft::testing::expect_answers_in_turn<libev_loop>(agent_kind()); }

TEST_P(libev, waits_concurrently) {
    all_within(500ms, "100 times a timer of 300 ms", 100,
               [](int) { weft::testing::run_for<libev_loop>(0.3); });
}

TEST_P(libev_in, can_be_stopped) {
    weft::testing::expect_loop_stopped_at_once<libev_loop>("ev_run");
}

}  // namespace
