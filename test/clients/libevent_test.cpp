// libevent, as it comes: an event_base for each agent.
#include <event2/event.h>

#include <list>
#include <memory>

#include "test/clients/loop_laws.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::call_back;
using weft::testing::callback;
using weft::testing::freed_by;

class libevent_loop {
public:
    void after(double seconds, callback f) {
        const ::timeval t{static_cast<::time_t>(seconds),
                          static_cast<::suseconds_t>(seconds * 1e6) % 1'000'000};
        add(-1, EV_TIMEOUT, std::move(f), &t);
    }
    void when_readable(int fd, callback f) { add(fd, EV_READ | EV_PERSIST, std::move(f), nullptr); }
    void run() { ::event_base_dispatch(base_.get()); }
    void end() { ::event_base_loopbreak(base_.get()); }

private:
    void add(int fd, short what, callback f, const ::timeval* t) {
        callbacks_.push_back(std::move(f));
        const auto called = [](evutil_socket_t, short, void* data) { call_back(data); };
        events_.emplace_back(::event_new(base_.get(), fd, what, called, &callbacks_.back()));
        EXPECT_EQ(::event_add(events_.back().get(), t), 0);
    }

    std::list<callback> callbacks_;
    const std::unique_ptr<::event_base, freed_by<::event_base_free>> base_{::event_base_new()};
    std::list<std::unique_ptr<::event, freed_by<::event_free>>> events_;
};

class libevent : public weft::testing::client_test {};
INSTANTIATE_FOR_ALL(libevent);
class libevent_in : public libevent {};
INSTANTIATE_FOR_FIBERS(libevent_in);

TEST_P(libevent, is_answered) {
    weft::testing::expect_answers_in_turn<libevent_loop>(agent_kind());
}

TEST_P(libevent, waits_concurrently) {
    all_within(500ms, "100 times a timer of 300 ms", 100,
               [](int) { weft::testing::run_for<libevent_loop>(0.3); });
}

TEST_P(libevent_in, can_be_stopped) {
    weft::testing::expect_loop_stopped_at_once<libevent_loop>("event_base_dispatch");
}

}  // namespace
