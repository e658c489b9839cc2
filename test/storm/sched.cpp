// Storm: a pool, strands in it and a loop on a thread of its own; tasks that sleep, yield, block
// and migrate from one to another, functions posted from everywhere, timers, and stops of all while
// flows end. What was posted ran once; a strand ran one at a time, and in order what one thread
// posted to it; each task ended once, and nothing of it is left; a timer that was stopped in time
// never called, and any other did.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "test/storm/storm.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sched/strand.hpp"
#include "weft/sched/timer.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/task.hpp"
#include "weft/task/task_handle.hpp"
#include "weft/wait/nursery.hpp"
#include "weft/wait/sleep.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::storm::random;

// Of a round.
std::atomic<std::int64_t> living{0};  // frames and functions
std::atomic<std::uint64_t> posted{0};
std::atomic<std::uint64_t> ran{0};
std::atomic<std::uint64_t> moves{0};

struct counted {
    counted() noexcept { living.fetch_add(1, std::memory_order_relaxed); }
    counted(const counted&) noexcept : counted() {}
    counted& operator=(const counted&) = delete;
    ~counted() { living.fetch_sub(1, std::memory_order_relaxed); }
};

// A strand, and what only it may touch.
struct guarded {
    static constexpr unsigned posters = 4;

    weft::strand on;
    unsigned inside = 0;
    std::uint64_t last[posters] = {};
    std::uint64_t given[posters] = {};  // by the poster of that number

    explicit guarded(weft::pool& p) : on(p) {}

    void alone() noexcept {
        STORM_CHECK(on.running_in_this_thread());
        STORM_CHECK(++inside == 1);
        STORM_CHECK(--inside == 0);
    }
    void post_as(unsigned poster) {
        posted.fetch_add(1, std::memory_order_relaxed);
        on.post([this, poster, number = ++given[poster], c = counted()]() noexcept {
            alone();
            STORM_CHECK(++last[poster] == number);
            ran.fetch_add(1, std::memory_order_relaxed);
        });
    }
};

struct world {
    weft::pool pool;
    std::vector<std::unique_ptr<guarded>> strands;
    weft::loop loop;
    std::atomic<bool> over{false};
    weft::blocking_pool calls{{.max_thread_count = 2}};

    world(unsigned workers, unsigned strand_count) : pool(workers) {
        for (unsigned n = 0; n != strand_count; ++n)
            strands.push_back(std::make_unique<guarded>(pool));
    }
    guarded& any_strand(random& r) noexcept { return *strands[r.below(strands.size())]; }
    weft::scheduler& anywhere(random& r) noexcept {
        switch (r.below(4)) {
            case 0:
                return loop;
            case 1:
                return pool.worker(static_cast<unsigned>(r.below(pool.thread_count())));
            case 2:
                return any_strand(r).on;
            default:
                return pool;
        }
    }
};

template <class On>
void post_counted(On& on) {
    posted.fetch_add(1, std::memory_order_relaxed);
    on.post([c = counted()]() noexcept { ran.fetch_add(1, std::memory_order_relaxed); });
}

weft::task<std::uint64_t> job(world& w, std::uint64_t seed, unsigned depth);

weft::task<void> step(world& w, random& r, unsigned depth) {
    const counted here;
    switch (r.below(9)) {
        case 0:
            co_await weft::sleep_for(weft::duration(r.below(300'000)));
            break;
        case 1:
            post_counted(w.pool);
            break;
        case 2:
            post_counted(w.loop);
            break;
        case 3: {
            guarded& g = w.any_strand(r);
            co_await weft::resume_on(g.on);
            g.alone();
            break;
        }
        case 4:
            co_await weft::resume_on(w.anywhere(r));
            break;
        case 5:
            if (depth != 0) {
                const std::uint64_t seed = r.next();
                STORM_CHECK(co_await weft::schedule_on(w.anywhere(r), job(w, seed, depth - 1)) ==
                            seed);
            }
            break;
        case 6: {
            const std::uint64_t x = r.next();
            STORM_CHECK(co_await weft::async_run_blocking([x] { return x; }, w.calls) == x);
            break;
        }
        case 7: {
            guarded& g = w.any_strand(r);
            co_await weft::resume_on(g.on);
            for (int n = 0; n != 3; ++n) {
                g.alone();
                co_await weft::sleep_for(0ns);
            }
            break;
        }
        default:
            co_await weft::resume_on(w.pool);
            break;
    }
    moves.fetch_add(1, std::memory_order_relaxed);
}

weft::task<std::uint64_t> job(world& w, std::uint64_t seed, unsigned depth) {
    const counted here;
    random r(seed);
    for (auto n = r.below(8); n-- != 0;) co_await step(w, r, depth);
    co_return seed;
}

weft::task<void> root(world& w, std::uint64_t seed) {
    const counted here;
    STORM_CHECK(co_await job(w, seed, 2) == seed);
}

// Timers of one thread: each is stopped, joined or left to call.
void use_timers(world& w, random& r) {
    struct one {
        std::atomic<int> calls{0};
        bool prevented = false;
        std::optional<weft::timer> t;
    };
    std::vector<std::unique_ptr<one>> all;
    for (auto n = r.below(6); n-- != 0;) {
        all.push_back(std::make_unique<one>());
        one& o = *all.back();
        weft::executor& on =
            r.one_in(2) ? static_cast<weft::executor&>(w.loop)
                        : w.pool.worker(static_cast<unsigned>(r.below(w.pool.thread_count())));
        o.t.emplace(on, weft::duration(r.below(400'000)),
                    [&o, c = counted()]() noexcept { o.calls.fetch_add(1); });
    }
    for (const auto& o : all)
        if (r.one_in(2)) o->prevented = o->t->stop();
    for (const auto& o : all) {
        while (!o->prevented && o->calls.load() == 0) std::this_thread::yield();
        STORM_CHECK(!o->t->stop_and_join());
        STORM_CHECK(o->calls.load() == (o->prevented ? 0 : 1));
        o->t.reset();
    }
}

void post_from_outside(world& w, unsigned poster, std::uint64_t seed) {
    random r(seed);
    for (auto n = r.below(1500); n-- != 0;) {
        switch (r.below(4)) {
            case 0:
                post_counted(w.pool);
                break;
            case 1:
                post_counted(w.loop);
                break;
            default:
                w.any_strand(r).post_as(poster);
        }
        if (r.one_in(16)) std::this_thread::yield();
    }
    if (r.one_in(4)) use_timers(w, r);
}

std::uint64_t one_round(random& r) {
    living = 0;
    posted = ran = moves = 0;
    {
        world w(1 + static_cast<unsigned>(r.below(3)), 1 + static_cast<unsigned>(r.below(3)));
        std::thread loop_thread([&w] {
            while (!w.over.load()) w.loop.run_once(weft::never);
            while (w.loop.run_once(w.loop.now())) {
            }
        });
        const std::uint64_t seed = r.next();
        const auto root_count = r.below(80);
        const bool stops = r.one_in(2);
        const auto patience = weft::duration(r.below(500'000));
        // All tasks start in one nursery, wherever they run; its stop is the stop of each.
        std::thread tasks([&w, seed, root_count, stops, patience] {
            random own(seed);
            weft::loop here;
            weft::fiber f(
                [&] {
                    weft::nursery all;
                    for (auto n = root_count; n-- != 0;) {
                        weft::scheduler& on = w.anywhere(own);
                        all.spawn(root(w, own.next()), {.on = on});
                    }
                    if (stops) {
                        weft::this_fiber::sleep_for(patience);
                        all.request_stop();
                    }
                    all.join();
                },
                {.on = here});
            here.run();
        });
        std::vector<std::thread> outside;
        const auto posters = r.below(guarded::posters);
        for (unsigned n = 0; n != posters; ++n)
            outside.emplace_back(post_from_outside, std::ref(w), n, r.next());
        for (auto& t : outside) t.join();
        tasks.join();
        // Fibers that only sleep are stopped by their executor: strand, loop and pool end while
        // others end.
        std::atomic<unsigned> ended{0};
        unsigned asleep = 0;
        for (auto n = r.below(6); n-- != 0; ++asleep)
            weft::fiber(
                [&ended] {
                    const counted here;
                    struct at_end {
                        std::atomic<unsigned>& n;
                        ~at_end() { ++n; }
                    } const e{ended};
                    weft::this_fiber::sleep_for(1h);
                },
                {.on = w.any_strand(r).on})
                .detach();
        w.strands.clear();
        STORM_CHECK(ended.load() == asleep);
        w.pool.wait_until_idle();
        w.over = true;
        if (r.one_in(2))
            w.loop.wake();
        else
            w.loop.stop();
        loop_thread.join();
    }
    STORM_CHECK(ran.load() == posted.load());
    STORM_CHECK(living.load() == 0);
    return posted.load() + moves.load() + 1;
}

}  // namespace

int main(int argc, char** argv) {
    return weft::testing::storm::run(argc, argv, "sched", one_round);
}
