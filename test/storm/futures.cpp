// Futures of every combinator, whose outcomes are set by plain threads, a pool and loops, while
// they are stopped, timed out and dropped. Its unit is a source: a promise, or a packaged_task.
//
// Laws: of the threads that set an outcome at the same time, at most one learns that its outcome
// counts; each waiter has exactly one outcome; a value is the one that was set, in its own
// position; and at the end of a round no value is live.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "test/storm/storm.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/future/packaged_task.hpp"
#include "weft/future/shared_future.hpp"
#include "weft/future/when.hpp"
#include "weft/sched/pool.hpp"

namespace {

using namespace std::chrono_literals;
using weft::future;
using weft::promise;
using draw = weft::testing::storm::random;

std::atomic<long> living{0};

struct value {
    std::uint64_t id;
    explicit value(std::uint64_t i) : id(i) { ++living; }
    value(const value& o) : id(o.id) { ++living; }
    value(value&& o) noexcept : id(o.id) { ++living; }
    value& operator=(const value&) = default;
    ~value() { --living; }
};

// A thread that runs what is posted to it, in order.
class giver {
public:
    ~giver() {
        give({});
        thread_.join();
    }
    void give(std::function<void()> f) {
        {
            const std::lock_guard held(lock_);
            jobs_.push_back(std::move(f));
        }
        more_.notify_one();
    }

private:
    void work() {
        for (;;) {
            std::unique_lock held(lock_);
            more_.wait(held, [&] { return !jobs_.empty(); });
            const std::function<void()> f = std::move(jobs_.front());
            jobs_.pop_front();
            held.unlock();
            if (!f) return;
            f();
        }
    }
    std::mutex lock_;
    std::condition_variable more_;
    std::deque<std::function<void()>> jobs_;
    std::thread thread_{[this] { work(); }};
};

// All that outlives a round.
struct world {
    weft::loop here;
    weft::testing::loop_thread there;
    weft::pool pool{2};
    giver givers[2];
    // A future that is dropped, and ends later, may still refer to the state of some rounds ago.
    std::deque<weft::stop_source> stops;
};
world& the_world() {
    static world w;
    return w;
}

class futures_round {
public:
    explicit futures_round(draw& r) : r_(r), w_(the_world()) {}

    std::uint64_t run() {
        const std::size_t chains = 50 + r_.below(200);
        for (std::size_t i = 0; i < chains; ++i) consume(chain());
        if (r_.one_in(2)) event_.reset();  // it may go before those that wait for it
        if (r_.one_in(2)) stops_.request_stop();
        wait([&] { return left_ == 0; });
        if (event_) event_.reset();
        wait([&] { return living == 0 && jobs_ == 0; });
        if (w_.stops.size() > 100) w_.stops.pop_front();
        return sources_;
    }

private:
    // On another agent, soon: on a thread, in the pool, on the other loop, or here.
    void elsewhere(std::function<void()> f) {
        ++jobs_;
        auto job = [this, does = std::move(f)]() mutable {
            does();
            does = nullptr;
            --jobs_;
        };
        switch (r_.below(5)) {
            case 0:
                return w_.pool.post(std::move(job));
            case 1:
                return w_.there.loop().post(std::move(job));
            case 2:
                return w_.here.post(std::move(job));
            default:
                return w_.givers[r_.below(2)].give(std::move(job));
        }
    }
    weft::executor& some_home() { return r_.one_in(3) ? w_.there.loop() : w_.here; }

    static bool give(promise<value>& p, std::uint64_t id, std::uint64_t how) {
        switch (how) {
            case 0:
                return p.set_error(weft::errc::closed);
            case 1:
                return p.set_exception(std::make_exception_ptr(std::runtime_error("given")));
            case 2:
                return p.set_stopped();
            default:
                return p.set_value(id);
        }
    }

    // One that is to come, with the value `id`.
    future<value> source(std::uint64_t id) {
        ++sources_;
        if (r_.one_in(6)) {
            weft::packaged_task<value()> t([id] { return value(id); }, some_home());
            auto f = t.get_future();
            auto shared = std::make_shared<weft::packaged_task<value()>>(std::move(t));
            const bool called = !r_.one_in(8);
            elsewhere([shared, called] {
                if (called) (*shared)();
            });
            return f;
        }
        struct shared_promise {
            promise<value> p;
            std::atomic<int> winners{0};
            explicit shared_promise(weft::executor& on) : p(on) {}
            ~shared_promise() { STORM_CHECK(winners <= 1); }
        };
        auto p = std::make_shared<shared_promise>(some_home());
        auto f = p->p.get_future();
        for (std::uint64_t n = 1 + r_.below(2); n != 0; --n) {
            const std::uint64_t how = r_.below(24);
            if (how == 23) continue;  // broken, unless another agent sets it
            elsewhere([p, id, how] { p->winners += give(p->p, id, how); });
        }
        return f;
    }

    // The same value after something else.
    future<value> step(future<value> f, std::uint64_t id, unsigned depth) {
        const auto same = [id](value v) {
            STORM_CHECK(v.id == id);
            return v;
        };
        switch (r_.below(14)) {
            case 0:
                return f.then(weft::plain, same);
            case 1:
                return f.then(same);
            case 2:
                return f.then([id](value v) {
                    STORM_CHECK(v.id == id);
                    weft::this_fiber::yield();
                    return v;
                });
            case 3: {
                auto inner = std::make_shared<future<value>>(source(id));
                return f.then(weft::plain, [id, inner](value v) {
                    STORM_CHECK(v.id == id);
                    return std::move(*inner);
                });
            }
            case 4:
                return f.stop_if(weft::plain, [no = !r_.one_in(8)] { return !no; });
            case 5:
                return f.poll(weft::plain, 3, [n = r_.below(5)]() mutable { return n-- == 0; });
            case 6:
                return f.poll_on(weft::plain, *event_,
                                 [n = r_.below(2)]() mutable { return n == 0 || n-- == 0; });
            case 7:
                return f.with_timeout(std::chrono::microseconds(r_.below(2000)));
            case 8:
                return f.with_stop(stops_.get_token());
            case 9:
                return f.via(some_home());
            case 10: {
                weft::shared_future<value> s = f.share();
                if (r_.one_in(2)) consume(s.then(weft::plain, [](const value& v) { return v; }));
                return s.then(weft::plain, [id](const value& v) {
                    STORM_CHECK(v.id == id);
                    return v;
                });
            }
            case 11:
                return f.delay(std::chrono::microseconds(r_.below(500)));
            default:
                return depth == 0 ? f.then(weft::plain, same) : group(std::move(f), id, depth);
        }
    }

    // Among others of the same value: the groups give those they name.
    future<value> group(future<value> f, std::uint64_t id, unsigned depth) {
        std::vector<future<value>> all;
        all.push_back(std::move(f));
        for (std::uint64_t n = 1 + r_.below(3); n != 0; --n)
            all.push_back(chain(id + all.size(), depth - 1));
        const auto first = [id](auto v) {
            STORM_CHECK(v.value.id == id + v.index);
            return value(id);
        };
        const auto some = [id](const auto& v) {
            for (const auto& x : v) STORM_CHECK(x.value.id == id + x.index);
            return value(id);
        };
        const auto even = [](const value& v) { return v.id % 2 == 0; };
        switch (r_.below(5)) {
            case 0:
                return weft::when_all(std::move(all)).then(weft::plain, [id](const auto& v) {
                    for (std::size_t i = 0; i < v.size(); ++i) STORM_CHECK(v[i].id == id + i);
                    return value(id);
                });
            case 1:
                return weft::when_any(std::move(all)).then(weft::plain, first);
            case 2:
                return weft::when_n(2, std::move(all)).then(weft::plain, some);
            case 3:
                return weft::when_n_if(1 + r_.below(3), std::move(all), even)
                    .then(weft::plain, some);
            default:
                return weft::when_any_if(std::move(all), even).then(weft::plain, first);
        }
    }

    future<value> chain(std::uint64_t id, unsigned depth) {
        future<value> f = source(id);
        for (std::uint64_t n = r_.below(4); n != 0; --n) f = step(std::move(f), id, depth);
        return f;
    }
    future<value> chain() {
        next_id_ += 100;
        return chain(next_id_, 2);
    }

    // Waits for it, drops it, or has it stopped elsewhere.
    void consume(future<value> f) {
        if (r_.one_in(8)) return;
        struct ending {
            std::atomic<int> outcomes{0};
            futures_round& of;
            const bool may_be_stopped;
            ending(futures_round& r, bool s) : of(r), may_be_stopped(s) { ++of.left_; }
            ~ending() {
                STORM_CHECK(outcomes == 1 || (outcomes == 0 && may_be_stopped));
                --of.left_;
            }
        };
        const bool is_stopped = r_.one_in(4);
        auto e = std::make_shared<ending>(*this, is_stopped);
        const auto ended = [e](future<value> g) {
            STORM_CHECK(g.is_ready());
            ++e->outcomes;
        };
        auto last = r_.one_in(2) ? f.then(weft::plain, ended) : f.then(ended);
        if (!is_stopped) return;
        auto handle = std::make_shared<future<>>(std::move(last));
        elsewhere([handle] { handle->request_stop(); });
    }

    // Runs what is to run here until then; ten seconds are for ever.
    template <class F>
    void wait(F until) {
        const auto limit = weft::steady_now() + 10s;
        while (!until()) {
            STORM_CHECK(weft::steady_now() < limit);
            if (event_) event_->set();  // also for those that started to wait meanwhile
            w_.here.run_once(weft::steady_now() + 100us);
        }
    }

    draw& r_;
    world& w_;
    std::optional<weft::poll_event> event_{std::in_place};
    weft::stop_source& stops_{w_.stops.emplace_back()};
    std::atomic<long> jobs_{0};
    std::atomic<long> left_{0};
    std::uint64_t sources_ = 0;
    std::uint64_t next_id_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    return weft::testing::storm::run(argc, argv, "futures",
                                     [](draw& r) { return futures_round(r).run(); });
}
