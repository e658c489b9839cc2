// weft/wait/flow.hpp and weft/wait/detail/nursery_block.hpp under the interleavings of the flow, of
// threads that post requests to its executor (a stop, or a call that runs between two of the flow's
// turns), and of a child that fails in one of the flow's blocks. The flow takes in the requests and
// migrates to another executor, after which its old executor ends. Bounded by deviations: a
// migration spins while it waits, and so does a thread that finds the lock of the failed blocks
// taken.
#include "weft/wait/flow.hpp"

#include <gtest/gtest.h>

#include <array>
#include <exception>
#include <optional>
#include <set>
#include <string>

#include "model/names.hpp"
#include "weft/wait/detail/nursery_block.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/waiter.hpp"

namespace {

using namespace model::names;

// An executor that only counts what is posted to it, and may end.
class home final : public weft::executor {
public:
    explicit home(model::var<int>& life) : life_(life) {}

    void post(weft::runnable&) noexcept override {
        static_cast<void>(life_.read());  // end() writes it: a use after the end is a race
        posts.fetch_add(1, std::memory_order_release);
    }
    void end() { life_.write(1); }
    void cancel_post(weft::runnable&) noexcept override { unused(); }
    void arm(weft::timer_node&) noexcept override { unused(); }
    void disarm(weft::timer_node&) noexcept override { unused(); }
    weft::time_point now() const noexcept override { return {}; }
    void defer(std::coroutine_handle<>, weft::flow*) noexcept override { unused(); }
    void register_flow(weft::flow&) noexcept override { unused(); }
    void deregister_flow(weft::flow&) noexcept override { unused(); }
    bool running_in_this_thread() const noexcept override { return false; }

    weft::atomic<int> posts{0};

private:
    [[noreturn]] static void unused() { model::fail("a home is asked for more than to post"); }

    model::var<int>& life_;
};

const weft::flow_kind kind = {"test",
                              nullptr,
                              [](weft::flow&) noexcept {},
                              [](weft::flow&) noexcept {},
                              [](weft::flow&) noexcept {},
                              [](const weft::flow&) noexcept { return weft::agent_info{}; }};

struct asking {
    bool stops = false;  // one requests a stop
    int posts = 0;       // so many post something
    bool to_another = true;
};

// The flow migrates, and the executor that it left ends. Then the flow takes in the requests: it
// sees the stop, or the new executor has a message.
report move_while(asking a, unsigned deviations) {
    return explore(
        [=](execution& run) {
            model::var<int> life_of_first;
            model::var<int> life_of_second;
            home first(life_of_first);
            home second(life_of_second);
            weft::flow f(kind);
            f.home = &first;
            std::array<weft::runnable, 2> runnables;
            std::array<bool, 2> posted{};
            bool seen = false;
            if (a.stops)
                run.thread("stops", [&] {
                    model::require(f.request_stop(weft::stop_reason::user), "it is the first");
                });
            for (int i = 0; i < a.posts; ++i)
                run.thread("posts", [&, i] {
                    const auto n = static_cast<std::size_t>(i);
                    posted[n] = f.post_home(runnables[n]);
                });
            run.thread("moves", [&] {
                f.migrate_to(a.to_another ? &second : nullptr);
                first.end();
                seen = f.stop.stop_requested();
            });
            run.go();
            int expected = 0;
            for (const bool p : posted) expected += p;
            const int messages = first.posts.load() + second.posts.load() - expected;
            model::require(messages == 0 || messages == 1, "a stop is one message at most");
            if (a.stops && a.to_another)  // otherwise the flow's next start finds the stop
                model::require(seen || messages == 1, "a stop is told, or found by the new home");
            if (a.to_another)
                for (int i = 0; i < a.posts; ++i)
                    model::require(posted[static_cast<std::size_t>(i)], "it always has a home");
        },
        {.deviations = deviations});
}

TEST(flow, leaves_an_executor_once_no_thread_uses_it) {
    for (bool to_another : {true, false}) {
        expect_right(move_while({.stops = true, .to_another = to_another}, 12), bounded);
        expect_right(move_while({.posts = 1, .to_another = to_another}, 12), bounded);
    }
}

// They are counted: the first to leave does not let the flow go.
TEST(flow, leaves_an_executor_after_the_last_of_several_users) {
    for (bool to_another : {true, false}) {
        expect_right(move_while({.posts = 2, .to_another = to_another}, 4), bounded);
        expect_right(move_while({.stops = true, .posts = 1, .to_another = to_another}, 4), bounded);
    }
}

// -- what was requested of a flow is delivered ----------------------------------------------------

// An executor with a thread that runs what is posted to the executor, in order of posting, and
// drops the rest at its end.
class place final : public weft::executor {
public:
    // `link` represents the link that queues a message; a thread that posts the message again must
    // be ordered after its removal.
    place(unsigned posters, model::var<int>& link) : posters_(posters), link_(link) {}

    // On its thread: until every poster has left. look() is called before each turn.
    template <class F>
    void run(F look) {
        weft::detail::this_thread_runs() = {nullptr, this};
        for (;;) {
            look();
            model::wait_until([&] {
                return due() != nullptr || left_.load(std::memory_order_acquire) == posters_;
            });
            weft::runnable* const r = take();
            if (r == nullptr) return;
            r->handle.resume();
        }
    }
    // The same of what is there now.
    void run_due() {
        weft::detail::this_thread_runs() = {nullptr, this};
        while (weft::runnable* const r = take()) r->handle.resume();
    }
    void end() {
        while (weft::runnable* const r = take()) r->handle.destroy();
        life_.write(0);
    }
    void leave() { left_.fetch_add(1, std::memory_order_release); }
    unsigned post_count() const { return post_count_.load(); }

    void post(weft::runnable& r) noexcept override {
        static_cast<void>(life_.read());
        if (r.of == nullptr) link_.write(0);
        const unsigned i = post_count_.fetch_add(1, std::memory_order_relaxed);
        model::require(i < posts_.size(), "there is room for every post");
        posts_[i].store(&r, std::memory_order_release);
    }
    weft::time_point now() const noexcept override { return {}; }
    void register_flow(weft::flow&) noexcept override {}
    void deregister_flow(weft::flow&) noexcept override {}
    bool running_in_this_thread() const noexcept override {
        return weft::current_executor() == this;
    }
    void cancel_post(weft::runnable&) noexcept override { unused(); }
    void arm(weft::timer_node&) noexcept override { unused(); }
    void disarm(weft::timer_node&) noexcept override { unused(); }
    void defer(std::coroutine_handle<>, weft::flow*) noexcept override { unused(); }

private:
    weft::runnable* due() const {
        return run_count_ == posts_.size() ? nullptr
                                           : posts_[run_count_].load(std::memory_order_acquire);
    }
    weft::runnable* take() {
        weft::runnable* const r = due();
        if (r == nullptr) return nullptr;
        if (r->of == nullptr) static_cast<void>(link_.read());
        ++run_count_;
        return r;
    }
    [[noreturn]] static void unused() { model::fail("a place is asked for more than to run"); }

    const unsigned posters_;
    model::var<int>& link_;
    std::array<weft::atomic<weft::runnable*>, 6> posts_{};
    weft::atomic<unsigned> post_count_{0};
    weft::atomic<unsigned> left_{0};
    std::size_t run_count_ = 0;
    model::var<int> life_;
};

// A flow that waits in the blocks of two nurseries, notes why it is to end, and waits again until
// that was a stop.
class line : weft::detail::frame {
    using nursery_block = weft::detail::nursery_block;

public:
    static inline const std::exception_ptr error = std::make_exception_ptr(1);
    static inline const std::exception_ptr others_error = std::make_exception_ptr(2);

    explicit line(place& at) : frame{arrive, nullptr}, turns_(&at) {
        f.home = &at;
        f.turn.handle = frame::handle();
        block.emplace(&f);
        other.emplace(&f);
    }

    void wait() {
        waiter_.emplace(f);
        waiter_->enlist("a request", nullptr, this, [](weft::waiter&) noexcept {}, hear);
        waiter_->begin_wait();
    }
    void go_on() {
        while (turns_ == weft::current_executor() && std::exchange(has_heard_, false)) {
            no_wait();
            if (heard.back() == 's') return;
            forget();
            wait();
        }
    }
    // Called when the block ends or has delivered its failure. Drops the other block's failure only
    // if the other block was the first to fail.
    void forget() {
        const bool of_other = nursery_block::failure_in(f) == others_error;
        weft::detail::this_thread_runs().current = &f;
        (of_other ? other : block)->clear_failure();
        weft::detail::this_thread_runs().current = nullptr;
    }
    void no_wait() {
        if (waiter_) waiter_->end_wait();
        waiter_.reset();
    }
    // By detach_from_executor in a wait that has ended, and attach_to_executor; or by migrate_to,
    // between two waits.
    void move(place& to, bool migratable) {
        go_on();
        own_.write(1);
        turns_ = nullptr;
        if (migratable) {
            f.detach_from_executor();
        } else {
            waits_again_ = waiter_.has_value();
            no_wait();
            f.migrate_to(&to);
        }
        to.post(f.turn);
    }
    void check(bool fails, bool other_fails, bool stops) {
        no_wait();
        block.reset();
        other.reset();
        model::require(!stops || heard.find('s') != heard.npos, "the flow is told of a stop");
        model::require(!fails || !heard.empty(), "the flow is told of a failure");
        model::require(!other_fails || heard.find('o') != heard.npos || heard.back() == 's',
                       "the flow is told of each block's failure until it is stopped");
        model::require(references == 0, "each message has let go of the flow");
    }

    static inline int references = 0;
    weft::flow f{kept};
    std::optional<nursery_block> block;
    std::optional<nursery_block> other;
    std::string heard;  // f: a failure, o: one in the other block, s: a stop

private:
    static constexpr weft::flow_kind kept = {
        "test",
        nullptr,
        [](weft::flow&) noexcept {},
        [](weft::flow&) noexcept { ++references; },
        [](weft::flow&) noexcept { --references; },
        [](const weft::flow&) noexcept { return weft::agent_info{}; }};

    static void hear(weft::waiter& w, weft::stop_reason why) noexcept {
        line& self = w.operation<line>();
        self.own_.write(2);  // a race where it is not on the flow's thread
        const bool of_other = nursery_block::failure_in(self.f) == others_error;
        self.heard += why != weft::stop_reason::sibling_failed ? 's' : of_other ? 'o' : 'f';
        self.has_heard_ = true;
    }
    static void arrive(frame* fr) {
        line& self = *static_cast<line*>(fr);
        self.own_.write(3);
        self.turns_ = weft::current_executor();
        self.f.attach_to_executor();
        if (self.waits_again_) self.wait();
    }

    std::optional<weft::waiter> waiter_;
    weft::executor* turns_;  // where they are; null: on the way
    bool has_heard_ = false;
    bool waits_again_ = false;
    model::var<int> own_;
};

struct telling {
    bool fails = false;
    bool other_fails = false;
    bool stops = false;
    bool forgets = false;  // the block may end before the message of its failure comes
    bool moves = false;
    bool migratable = false;  // it has no executor for a while
    bool first_ends = true;   // the executor that it left drops its message, else runs it
};

report tell(telling t, unsigned deviations, std::set<std::string>* orders = nullptr) {
    return explore(
        [=](execution& run) {
            const unsigned posters = unsigned{t.fails} + t.other_fails + t.stops + t.moves;
            model::var<int> link;
            place first(posters, link);
            place second(posters, link);
            line::references = 0;
            line l(first);
            place& last = t.moves ? second : first;
            if (t.fails)
                run.thread("fails", [&] {
                    l.block->fail(line::error);
                    last.leave();
                });
            if (t.other_fails)
                run.thread("other fails", [&] {
                    l.other->fail(line::others_error);
                    last.leave();
                });
            if (t.stops)
                run.thread("stops", [&] {
                    model::require(l.f.request_stop(weft::stop_reason::user), "it is the first");
                    last.leave();
                });
            run.thread("first", [&] {
                l.wait();
                if (t.forgets) l.forget();
                if (!t.moves) return first.run([&] { l.go_on(); });
                first.run_due();
                l.move(second, t.migratable);
                if (t.first_ends)
                    first.end();
                else
                    first.run_due();
                second.leave();
            });
            if (t.moves) run.thread("second", [&] { second.run([&] { l.go_on(); }); });
            run.go();
            l.check(t.fails && !t.forgets, t.other_fails, t.stops);
            if (orders != nullptr)
                orders->insert(l.heard + std::to_string(first.post_count() + second.post_count()));
        },
        {.deviations = deviations});
}

TEST(flow, receives_a_stop_and_a_failure_in_a_block) {
    std::set<std::string> orders;
    expect_right(tell({.fails = true}, 12));
    expect_right(tell({.stops = true}, 12));
    expect_right(tell({.fails = true, .stops = true}, 3, &orders), bounded);
    expect_right(tell({.fails = true, .stops = true, .forgets = true}, 3), bounded);
    // Each failure is delivered, although one may be forgotten as the other arrives.
    expect_right(tell({.fails = true, .other_fails = true}, 3), bounded);
    expect_right(tell({.fails = true, .other_fails = true, .stops = true}, 1), bounded);
    // By one message, or by two in each order; a flow that was stopped does not wait again.
    EXPECT_EQ(orders, (std::set<std::string>{"fs1", "fs2", "s2"}));
}

TEST(flow, receives_requests_before_and_after_a_migration) {
    for (bool migratable : {false, true})
        for (bool first_ends : {false, true}) {
            telling t{
                .fails = true, .moves = true, .migratable = migratable, .first_ends = first_ends};
            expect_right(tell(t, 3), bounded);
            t.stops = true;
            expect_right(tell(t, 2), bounded);
            t.fails = false;
            expect_right(tell(t, 3), bounded);
        }
}

}  // namespace
