// cancel_table: every operation of io that can wait, ended early in every possible way: by a stop,
// by a deadline, with its fiber or its frame, with its frame after its result has arrived, and by a
// close of the object it waits on. The operation ends at once; nothing leaks, no delivered result
// is lost, and the object it waited on can be used as before.
//
// An operation is a row: `operation()`, which cannot end by itself; `complete()`, an external event
// after which it can; `left(cut)`, what is wrong with the state that an early end has left. A row
// may declare that it ends_its_object, so that it cannot be started again; that it has_a_part of
// the awaited object, which is destroyed with its frame; or that there_is_one of the object it
// waits on. `close()` closes that object, where it can be closed, and `number()` is its descriptor
// until then.
//
//   constexpr cancel_row rows[] = {{"tcp_read", make_scene<tcp_read_row>}};
//   INSTANTIATE_CANCEL_TABLE(rows);
//
// The laws are here and the rows are in the tests, so that an optional part of io has its own.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "test/io/reused_fd.hpp"
#include "test/io/way.hpp"
#include "weft/base/errc.hpp"
#include "weft/base/result.hpp"
#include "weft/io/datagram_batch.hpp"
#include "weft/io/relay.hpp"
#include "weft/task/eager_task.hpp"

namespace weft::testing {

using namespace std::chrono_literals;

// How an operation ended; what it gave is dropped.
struct ending {
    std::error_code error;
    std::size_t bytes = 0;
};
inline ending ending_of(const transfer_result& t) { return {t.error(), t.bytes()}; }
inline ending ending_of(const result<std::size_t>& r) { return {r.error(), r.value_or(0)}; }
inline ending ending_of(const send_many_result& m) { return {m.error(), m.count()}; }
inline ending ending_of(const relay_result& r) {
    return {r.error(), static_cast<std::size_t>(r.bytes())};
}
template <class T>
ending ending_of(const result<T>& r) {
    return {r.error()};
}

class cancel_scene {
public:
    virtual ~cancel_scene() = default;
    virtual task<ending> begin(suspends) = 0;
    virtual task<ending> begin(blocks) = 0;
    virtual void complete_it() = 0;
    virtual const char* wrong_after(const ending& cut) = 0;
    virtual bool can_begin_again() const = 0;
    virtual bool holds_a_part() const = 0;
    virtual bool is_alone() const = 0;
    virtual void close() = 0;
    virtual int number() const = 0;  // -1: the row does not report it
};

// Of a row.
template <class Row>
class scene_of final : public cancel_scene {
public:
    task<ending> begin(suspends wait) override { return begin_by(wait); }
    task<ending> begin(blocks wait) override { return begin_by(wait); }
    void complete_it() override { row_.complete(); }
    const char* wrong_after(const ending& cut) override {
        if constexpr (requires { row_.left(cut); })
            return row_.left(cut);
        else
            return nullptr;
    }
    bool can_begin_again() const override {
        return !requires { Row::ends_its_object; };
    }
    bool holds_a_part() const override {
        return requires { Row::has_a_part; };
    }
    bool is_alone() const override {
        return requires { Row::there_is_one; };
    }
    void close() override {
        if constexpr (requires { row_.close(); }) row_.close();
    }
    int number() const override {
        if constexpr (requires { row_.number(); })
            return row_.number();
        else
            return -1;
    }

private:
    template <class Wait>
    task<ending> begin_by(Wait wait) {
        decltype(auto) r = co_await wait(row_.operation());
        co_return ending_of(r);
    }

    Row row_;
};

struct scene_maker {
    std::unique_ptr<cancel_scene> (*make)();
    bool can_be_closed;
};
template <class Row>
inline constexpr scene_maker make_scene = {
    []() -> std::unique_ptr<cancel_scene> { return std::make_unique<scene_of<Row>>(); },
    requires(Row& r){r.close();
}  // namespace weft::testing
}
;

struct cancel_row {
    const char* name;
    scene_maker of;
    bool ring_begins_it = false;  // io_uring starts it at once, and its end is awaited
};
using cancel_case = std::tuple<cancel_row, way>;

// Each row in each way, except where nothing can be ended early: what a ring starts at once.
template <class Wanted>
std::vector<cancel_case> cancel_cases(std::span<const cancel_row> rows, Wanted wanted) {
    std::vector<cancel_case> all;
    for (const cancel_row& r : rows)
        for (const way& w : all_ways)
            if (!(r.ring_begins_it && w.driver == io_kind::io_uring) && wanted(r, w))
                all.emplace_back(r, w);
    return all;
}
inline constexpr auto any_case = [](const cancel_row&, const way&) { return true; };
// A plain thread is neither stopped nor destroyed.
inline constexpr auto of_a_flow = [](const cancel_row&, const way& w) {
    return w.agent != kind::thread;
};
inline constexpr auto of_what_is_closed = [](const cancel_row& r, const way&) {
    return r.of.can_be_closed;
};
inline constexpr auto of_a_flow_at_what_is_closed = [](const cancel_row& r, const way& w) {
    return of_a_flow(r, w) && of_what_is_closed(r, w);
};

inline constexpr int cancel_rounds = 3;
inline constexpr auto cancel_patience = 2s;

// A loop on which the test calls run_once(), and an agent in it.
class cancelled {
public:
    explicit cancelled(const way& w) : way_(w), loop_(make_io_driver(w.driver)) {}

    weft::loop& loop() { return loop_; }

    // The body has had its first turn and waits.
    template <class Body>
    void begin(Body body) {
        if (way_.agent == kind::fiber)
            fibers_.emplace_back(
                [body]() mutable {
                    task<> t = body(blocks());
                    t.start();
                    EXPECT_TRUE(t.done());
                    t.get();
                },
                fiber_options{.on = loop_});
        else
            loop_.post(
                [this, body] { tasks_.push_back(std::make_unique<eager_task<>>(run(body))); });
        for (int i = 0; i < 3; ++i) loop_.run_once(after(loop_.now(), 200us));
    }
    void request_stop() {
        for (fiber& f : fibers_) f.request_stop();
        for (auto& t : tasks_) t->request_stop();
    }
    // A frame that is destroyed; the fibers go with the loop.
    void kill(std::size_t i) {
        if (way_.agent == kind::fiber)
            loop_.stop();
        else if (i < tasks_.size())  // else it has not started
            tasks_[i].reset();
    }
    template <class Ended>
    bool run_until(Ended ended) {
        const auto end = steady_now() + cancel_patience;
        while (!ended() && steady_now() < end) loop_.run_once(after(loop_.now(), 50ms));
        return ended();
    }
    ~cancelled() {
        for (fiber& f : fibers_) f.detach();
        if (!tasks_.empty()) {
            loop_.post([this] { tasks_.clear(); });
            loop_.run_until_idle();
        }
    }

private:
    template <class Body>
    static eager_task<> run(Body body) {
        co_await body(suspends());
    }

    const way way_;
    std::vector<std::unique_ptr<eager_task<>>> tasks_;
    weft::loop loop_;  // ends with what is live in it
    std::vector<fiber> fibers_;
};

inline bool is_cut(const std::error_code& e) {
    return e == std::errc::operation_canceled || e == std::errc::timed_out;
}
inline double ms_since(time_point t) {
    return std::chrono::duration<double, std::milli>(steady_now() - t).count();
}
// An optimised build on an idle machine needs a few microseconds.
inline constexpr double at_once_ms = WEFT_TEST_ASAN || WEFT_TEST_TSAN ? 20 : 1;

class cancel_table : public ::testing::TestWithParam<cancel_case> {
protected:
    void SetUp() override {
        WEFT_SKIP_IF_NOT_HERE(by());
        detail::shared_io_driver();  // stays
    }
    std::unique_ptr<cancel_scene> make() const { return std::get<0>(GetParam()).of.make(); }
    const way& by() const { return std::get<1>(GetParam()); }

    // The result of a cut, and what the cut has left.
    void expect_sound(cancel_scene& s, const ending& cut) {
        EXPECT_TRUE(cut.bytes != 0 || is_cut(cut.error)) << cut.error.message();
        const char* const wrong = s.wrong_after(cut);
        EXPECT_EQ(wrong, nullptr) << wrong;
        expect_usable(s);
    }
    // An operation that was ended early can be started again, and completes.
    void expect_usable(cancel_scene& s) {
        if (!s.can_begin_again()) return;
        ending e;
        crew again(by(), [&](auto wait) -> task<> { e = co_await s.begin(wait); });
        again.asleep();
        s.complete_it();
        again.join();
        EXPECT_FALSE(e.error) << "begun again: " << e.error.message();
    }
    // So many rounds. The median of their delays counts, and more rounds run while it is too large:
    // a machine that is busy elsewhere is not late each time.
    //
    // `again` is what round() returns where the operation did not wait: a full TCP socket has room
    // when its peer has found some, and a little is soon written. Then the round is repeated.
    static constexpr double again = -1e9;
    static constexpr int most_begins = 20;
    template <class Round>
    static void expect_in_time(double limit_ms, Round round) {
        double median = 0;
        for (int tries = 0; tries < 6; ++tries) {
            std::vector<double> late;
            for (int i = 0; i < cancel_rounds; ++i) {
                std::optional<double> ms = again;
                for (int n = 1; ms == again; ++n) ms = round(n == most_begins);
                if (!ms) return;
                EXPECT_GE(*ms, 0) << "too early";
                EXPECT_LT(*ms, 1000);
                late.push_back(*ms);
            }
            std::sort(late.begin(), late.end());
            median = late[late.size() / 2];
            if (median < limit_ms + 2 * lateness_of_a_sleep()) return;
        }
        ADD_FAILURE() << median << " ms late";
    }
    // What the machine makes of a sleep at present, in ms: next to nothing, unless it is busy.
    static double lateness_of_a_sleep() {
        std::array<double, 5> late;
        for (double& ms : late) {
            const auto begun = steady_now();
            std::this_thread::sleep_for(500us);
            ms = ms_since(begun) - 0.5;
        }
        std::sort(late.begin(), late.end());
        return late[late.size() / 2];
    }
};

class cancel_of_flow : public cancel_table {};
class cancel_by_close : public cancel_table {};
class cancel_after_close : public cancel_table {};

inline std::string name_of_cancel(const ::testing::TestParamInfo<cancel_case>& i) {
    return std::get<0>(i.param).name + ("_by_" + name_of(std::get<1>(i.param)));
}
TEST_P(cancel_of_flow, a_stop_ends_it_at_once) {
    const long before = descriptor_count();
    expect_in_time(at_once_ms, [&](bool is_last) -> std::optional<double> {
        const auto s = make();
        std::optional<ending> e;
        std::optional<double> late;
        {
            cancelled c(by());
            c.begin([&](auto wait) -> task<> { e = co_await s->begin(wait); });
            if (e && !is_last) return again;
            EXPECT_FALSE(e) << "it does not wait";
            const auto asked = steady_now();
            c.request_stop();
            if (c.run_until([&] { return e.has_value(); })) late = ms_since(asked);
        }
        EXPECT_TRUE(late) << "it is not woken";
        expect_sound(*s, *e);
        return late;
    });
    EXPECT_EQ(descriptor_count(), before);
}

TEST_P(cancel_table, a_deadline_ends_it_in_time) {
    const long before = descriptor_count();
    // A timer has a resolution, and the thread it is on is woken from a sleep.
    expect_in_time(at_once_ms + 10, [&](bool is_last) -> std::optional<double> {
        const auto s = make();
        std::optional<ending> e;
        double late = 0;
        crew agent(by(), [&](auto wait) -> task<> {
            const auto begun = steady_now();
            const timeout_scope limit(3ms);
            e = co_await s->begin(wait);
            late = ms_since(begun) - 3;
        });
        agent.join();
        if (late < 0 && !is_last) return again;
        expect_sound(*s, *e);
        return late;
    });
    EXPECT_EQ(descriptor_count(), before);
}

TEST_P(cancel_of_flow, its_flow_may_be_destroyed) {
    const long before = descriptor_count();
    for (int i = 0, begins = 0; i < cancel_rounds; ++i) {
        const auto s = make();
        bool ended = false;
        bool ended_at_once = false;
        const auto asked = [&] {
            cancelled c(by());
            c.begin([&](auto wait) -> task<> {
                static_cast<void>(co_await s->begin(wait));
                ended = true;
            });
            ended_at_once = ended;
            return steady_now();
        }();
        if (ended_at_once && ++begins < most_begins) {
            --i;
            continue;
        }
        EXPECT_FALSE(ended_at_once);
        EXPECT_LT(ms_since(asked), 1000);
        if (!s->holds_a_part()) expect_usable(*s);  // else what had arrived was destroyed with it
    }
    EXPECT_EQ(descriptor_count(), before);
}

// Two that wait, of which both get what they wait for at once: the first to run ends the other.
TEST_P(cancel_of_flow, its_flow_may_be_destroyed_when_its_result_has_come) {
    const long before = descriptor_count();
    for (int i = 0, begins = 0; i < cancel_rounds; ++i) {
        std::unique_ptr<cancel_scene> scenes[2];
        for (auto& s : scenes) {
            s = make();
            if (s->is_alone()) break;
        }
        int ended = 0;
        {
            cancelled c(by());
            for (std::size_t k = 0; k < 2; ++k)
                if (scenes[k] != nullptr)
                    c.begin([&, k](auto wait) -> task<> {
                        static_cast<void>(co_await scenes[k]->begin(wait));
                        if (ended++ == 0 && scenes[1 - k] != nullptr) c.kill(1 - k);
                    });
            if (ended != 0 && ++begins < most_begins) {
                --i;
                continue;
            }
            ASSERT_EQ(ended, 0);
            for (auto& s : scenes)
                if (s != nullptr) s->complete_it();
            const auto end = steady_now() + cancel_patience;
            if (scenes[0]->can_begin_again())
                while (ended == 0 && steady_now() < end)
                    c.loop().run_once(after(c.loop().now(), 50ms));
            else
                c.loop().run_once(after(c.loop().now(), 1ms));
            EXPECT_TRUE(ended != 0 || !scenes[0]->can_begin_again());
        }
    }
    EXPECT_EQ(descriptor_count(), before);
}

TEST_P(cancel_by_close, a_close_ends_it) {
    const long before = descriptor_count();
    for (int i = 0, begins = 0; i < 2;) {
        const bool beside = i == 1;
        const auto s = make();
        ending e;
        crew agent(by(), [&](auto wait) -> task<> { e = co_await s->begin(wait); });
        agent.asleep();
        if (agent.has_ended() && ++begins < most_begins) continue;
        EXPECT_FALSE(agent.has_ended()) << e.error.message();
        if (beside)
            agent.do_beside([&] { s->close(); });
        else
            s->close();
        agent.join();
        EXPECT_EQ(e.error, errc::closed) << e.error.message();
        const char* const wrong = s->wrong_after(e);
        EXPECT_EQ(wrong, nullptr) << wrong;
        ++i;
    }
    EXPECT_EQ(descriptor_count(), before);
}

// The descriptor is another file's by then, which has something to read and room to write.
TEST_P(cancel_by_close, it_is_refused_after_a_close_and_leaves_the_number_alone) {
    const auto s = make();
    const int number = s->number();
    s->close();
    EXPECT_EQ(s->number(), -1);
    const reused_fd there(number);
    for (int i = 0; i < 2; ++i) {
        ending e;
        crew agent(by(), [&](auto wait) -> task<> { e = co_await s->begin(wait); });
        agent.join();
        EXPECT_EQ(e.error, errc::closed) << e.error.message();
        EXPECT_EQ(e.bytes, 0u);
        EXPECT_STREQ(there.touched(), nullptr);
    }
}

// What is closed has an error of its own, which a stop does not hide: the caller may try again
// after a stop that was meant for something else.
TEST_P(cancel_after_close, a_stopped_flow_is_given_the_error_of_the_close) {
    for (int begins = 1;; ++begins) {
        const auto s = make();
        ending cut;
        std::optional<ending> e;
        cancelled c(by());
        c.begin([&](auto wait) -> task<> {
            cut = co_await s->begin(wait);
            s->close();
            e = co_await s->begin(wait);
        });
        c.request_stop();
        ASSERT_TRUE(c.run_until([&] { return e.has_value(); }));
        EXPECT_EQ(e->error, errc::closed) << e->error.message();
        EXPECT_EQ(e->bytes, 0u);
        const bool had_no_wait = cut.bytes == 0 && !cut.error;
        if (had_no_wait && begins < most_begins) continue;
        EXPECT_TRUE(cut.bytes != 0 || is_cut(cut.error)) << cut.error.message();
        return;
    }
}

}  // namespace weft::testing

#define INSTANTIATE_CANCEL_TABLE(rows)                                                             \
    INSTANTIATE_TEST_SUITE_P(of, cancel_table, ::testing::ValuesIn(cancel_cases(rows, any_case)),  \
                             name_of_cancel);                                                      \
    INSTANTIATE_TEST_SUITE_P(of, cancel_of_flow,                                                   \
                             ::testing::ValuesIn(cancel_cases(rows, of_a_flow)), name_of_cancel);  \
    INSTANTIATE_TEST_SUITE_P(of, cancel_by_close,                                                  \
                             ::testing::ValuesIn(cancel_cases(rows, of_what_is_closed)),           \
                             name_of_cancel);                                                      \
    INSTANTIATE_TEST_SUITE_P(of, cancel_after_close,                                               \
                             ::testing::ValuesIn(cancel_cases(rows, of_a_flow_at_what_is_closed)), \
                             name_of_cancel)
