// manual_executor: an executor without a thread of its own, for tests: run_all() runs what is
// posted, and its clock stands until it is set.
//
// Any thread may post. Everything else, run_all() and advance() first, is for one thread.
//
//   manual_executor on;
//   on.start(some_coroutine);       // in its turn
//   on.advance(10ms);               // fires what is due, and runs what comes of it
//   EXPECT_EQ(on.timer_count(), 0u);
#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "weft/wait/flow.hpp"

namespace weft::testing {

class manual_executor final : public executor {
public:
    manual_executor() = default;
    manual_executor(const manual_executor&) = delete;
    manual_executor& operator=(const manual_executor&) = delete;
    ~manual_executor() {
        WEFT_ASSERT(timers_.empty(), "a timer outlives its executor");
        WEFT_ASSERT(pending_count() == 0, "a post outlives its executor");
        WEFT_ASSERT(enrolled_ == 0, "a flow outlives its executor");
    }

    // Runs what is ready, and what comes of it, until there is nothing. How many turns.
    std::size_t run_all() {
        std::size_t turns = 0;
        for (entry e; take(e); ++turns) detail::run_turn(*this, e.handle, e.of);
        return turns;
    }
    // One turn of what is ready; false when there is nothing.
    bool run_one() {
        entry e;
        if (!take(e)) return false;
        detail::run_turn(*this, e.handle, e.of);
        return true;
    }
    // Destroys what is ready without running it, as where an executor ends.
    void drop_all() {
        for (entry e; take(e);) call([&] { e.handle.destroy(); });
    }
    // Runs f here and now, as a turn of `of`.
    template <class F>
    void call(F f, flow* of = nullptr) {
        struct called : detail::frame {
            F& f;
            explicit called(F& g)
                : frame{[](frame* s) { static_cast<called*>(s)->f(); }, {}}, f(g) {}
        } c(f);
        detail::run_turn(*this, c.handle(), of);
    }

    void fire_due() {
        call([this] {
            while (!timers_.empty() && timers_.begin()->first <= now_) {
                timer_node& t = *timers_.begin()->second;
                disarm(t);
                t.fire(t);
            }
        });
    }
    // Sets the clock without a check of the timers.
    void set(time_point t) noexcept { now_ = t; }
    void advance(duration d) {
        now_ += d;
        fire_due();
        run_all();
    }

    std::size_t timer_count() const noexcept { return timers_.size(); }
    std::size_t pending_count() {
        const std::lock_guard held(lock_);
        return posted_.size();
    }

    // What happens meanwhile: called once, within the next post.
    void in_next_post(std::function<void()> f) { meanwhile_ = std::move(f); }
    // The same, when the next flow leaves it.
    void in_next_strike_off(std::function<void()> f) { as_one_leaves_ = std::move(f); }

    void post(runnable& r) noexcept override {
        if (const auto f = std::exchange(meanwhile_, nullptr)) f();
        const std::lock_guard held(lock_);
        posted_.push_back({r.handle, r.of, &r});
    }
    void defer(std::coroutine_handle<> handle, flow* of) noexcept override {
        const std::lock_guard held(lock_);
        posted_.push_back({handle, of, nullptr});
    }
    void cancel_post(runnable& r) noexcept override {
        while (!take_out(r)) std::this_thread::yield();
    }
    void arm(timer_node& t) noexcept override {
        t.armed = true;
        timers_.emplace(t.deadline, &t);
    }
    void disarm(timer_node& t) noexcept override {
        WEFT_ASSERT(t.armed, "disarm of a timer that is not armed");
        auto [at, end] = timers_.equal_range(t.deadline);
        while (at != end && at->second != &t) ++at;
        WEFT_ASSERT(at != end, "an armed timer is among the timers");
        timers_.erase(at);
        t.armed = false;
    }
    time_point now() const noexcept override { return now_; }
    void register_flow(flow&) noexcept override { ++enrolled_; }
    void deregister_flow(flow&) noexcept override {
        if (const auto f = std::exchange(as_one_leaves_, nullptr)) f();
        --enrolled_;
    }
    bool running_in_this_thread() const noexcept override { return current_executor() == this; }

private:
    struct entry {
        std::coroutine_handle<> handle;
        flow* of;
        runnable* posted;
    };

    bool take(entry& e) {
        const std::lock_guard held(lock_);
        if (posted_.empty()) return false;
        e = posted_.front();
        posted_.pop_front();
        return true;
    }
    bool take_out(runnable& r) {
        const std::lock_guard held(lock_);
        for (auto at = posted_.begin(); at != posted_.end(); ++at) {
            if (at->posted != &r) continue;
            posted_.erase(at);
            return true;
        }
        return false;
    }

    std::mutex lock_;  // guards posted_
    std::deque<entry> posted_;
    std::multimap<time_point, timer_node*> timers_;
    time_point now_{std::chrono::hours(1)};
    std::function<void()> meanwhile_;
    std::function<void()> as_one_leaves_;
    int enrolled_ = 0;
};

// A flow that cannot block, like that of an awaiter chain: it may be stored in a test's frame.
struct coroutine_flow : flow {
    static inline int kept = 0;

    explicit coroutine_flow(executor& on) noexcept : flow(kind_of_coroutine) { home = &on; }

private:
    static void end_nothing(flow&) noexcept {}
    static void keep(flow&) noexcept { ++kept; }
    static void release(flow&) noexcept { --kept; }
    static agent_info info_of(const flow&) noexcept { return {"coroutine", 7, "test"}; }
    static constexpr flow_kind kind_of_coroutine = {"coroutine", nullptr, end_nothing,
                                                    keep,        release, info_of};
};

// A C++20 coroutine of the plainest kind: start() starts it, and its owner destroys it at whatever
// point it is. An exception that leaves it ends the program.
class plain_coroutine {
public:
    struct promise_type {
        plain_coroutine get_return_object() noexcept {
            return plain_coroutine(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { fail("an exception left a test's coroutine"); }
    };

    plain_coroutine() = default;
    plain_coroutine(plain_coroutine&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)) {}
    plain_coroutine& operator=(plain_coroutine&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~plain_coroutine() { destroy(); }

    // Its first turn, here and now.
    void start(executor& on, flow* of = nullptr) { detail::run_turn(on, handle_, of); }
    bool done() const { return handle_.done(); }
    std::coroutine_handle<> handle() const { return handle_; }
    void destroy() {
        if (handle_) release().destroy();
    }
    std::coroutine_handle<> release() noexcept { return std::exchange(handle_, nullptr); }

private:
    explicit plain_coroutine(std::coroutine_handle<> h) noexcept : handle_(h) {}
    std::coroutine_handle<> handle_;
};

}  // namespace weft::testing
