// Managed fibers and tasks, resumed, cancelled, killed, made late, joined, replied to and followed
// by others, from four threads, while their manager is closed, reopened and destroyed.
//
// Laws: each task that was spawned ends exactly once, by one cause that the statistics count; each
// hook is called once; each join returns; a function that started has its destructors run once;
// nothing is spawned into a closed manager; and after the last there is no task, no deadline and no
// pending reply. An operation is one call of the manager.

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "test/storm/storm.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/base/errc.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace std::chrono_literals;
using weft::managed_handle;
using weft::managed_status;
using weft::testing::loop_thread;
using weft::testing::storm::random;

constexpr std::size_t slot_count = 16;
constexpr int thread_count = 4;

struct storm_round {
    weft::pool& pool;
    weft::loop& loop;
    weft::task_manager<> m;
    std::array<std::atomic<std::uint64_t>, slot_count> ids{};
    std::array<std::atomic<std::uint64_t>, slot_count> sequences{};
    std::atomic<std::uint64_t> spawned{0}, hooks_set{0}, hooks_called{0}, begun{0}, gone{0},
        joins{0}, answers{0}, operations{0};

    storm_round(weft::pool& p, weft::loop& l, const weft::manager_options& o)
        : pool(p), loop(l), m(o) {}

    // An object of a function that has started.
    struct life {
        storm_round& r;
        explicit life(storm_round& of) : r(of) { ++r.begun; }
        life(const life&) = delete;
        ~life() { ++r.gone; }
    };

    // A join, which is answered however it ends.
    struct one_join {
        storm_round& r;
        explicit one_join(storm_round& of) : r(of) { ++r.joins; }
        one_join(const one_join&) = delete;
        ~one_join() { ++r.answers; }
    };

    std::uint64_t some_id(random& x) { return ids[x.below(slot_count)]; }

    // What a task of either kind does, selected by a number.
    void live_as_fiber(std::uint64_t how) {
        const life here(*this);
        random x(how);
        for (std::uint64_t n = x.below(4); n != 0; --n) {
            switch (x.below(6)) {
                case 0:
                    weft::this_managed::suspend<int>();
                    break;
                case 1: {
                    const weft::shield s;
                    static_cast<void>(
                        weft::this_managed::suspend<int>(weft::after(weft::now(), 1ms)));
                    break;
                }
                case 2:
                    weft::this_fiber::yield();
                    break;
                case 3:
                    join_one(x);
                    break;
                case 4: {
                    auto reply = m.expect<int>();
                    sequences[x.below(slot_count)] = reply.sequence();
                    static_cast<void>(reply.wait(1ms));
                    break;
                }
                default:
                    weft::this_fiber::sleep_for(std::chrono::microseconds(x.below(500)));
            }
        }
    }
    weft::task<> live_as_task(std::uint64_t how) {
        const life here(*this);
        random x(how);
        for (std::uint64_t n = x.below(4); n != 0; --n) {
            switch (x.below(6)) {
                case 0:
                    co_await weft::this_managed::async_suspend<int>();
                    break;
                case 1: {
                    const weft::shield s;
                    static_cast<void>(co_await weft::this_managed::async_suspend<int>(
                        weft::after(weft::now(), 1ms)));
                    break;
                }
                case 2:
                    co_await weft::resume_on(loop);
                    co_await weft::resume_on(pool);
                    break;
                case 3: {
                    const one_join counted(*this);
                    static_cast<void>(co_await m.async_join(some_id(x)));
                    break;
                }
                case 4:
                    co_await weft::resume_on(x.one_in(2) ? static_cast<weft::scheduler&>(loop)
                                                         : pool.worker(0));
                    break;
                default:
                    co_await weft::sleep_for(std::chrono::microseconds(x.below(500)));
            }
        }
    }
    void join_one(random& x) {
        const one_join counted(*this);
        static_cast<void>(m.join(some_id(x)));
    }

    void spawn(random& x) {
        const std::uint64_t how = x.next();
        weft::spawn_options o;
        if (x.one_in(3)) o.timeout = std::chrono::microseconds(x.below(3000));
        if (x.one_in(3)) o.on = loop;
        if (x.one_in(8)) o.launch = weft::launch::deferred;
        const bool lazy = o.launch == weft::launch::deferred;
        const auto h =
            x.one_in(2)
                ? m.spawn_with_handle([this, how] { live_as_fiber(how); }, std::move(o))
                : m.spawn_with_handle([this, how] { return live_as_task(how); }, std::move(o));
        if (!h) {
            STORM_CHECK(h.error() == weft::errc::closed ||
                        h.error() == weft::manager_errc::too_many_tasks);
            return;
        }
        ++spawned;
        if (x.one_in(2)) {
            ++hooks_set;
            STORM_CHECK(!m.on_finish(*h, [this] { ++hooks_called; }));
        }
        if (x.one_in(6) && m.then(*h, [this, how] { live_as_fiber(how); })) ++spawned;
        if (lazy && x.one_in(2)) m.start(h->id());
        ids[x.below(slot_count)] = h->id();
    }

    void one(random& x) {
        ++operations;
        const std::uint64_t id = some_id(x);
        switch (x.below(12)) {
            case 0:
            case 1:
            case 2:
                return spawn(x);
            case 3:
            case 4:
                m.resume(id, 7);
                return;
            case 5:
                m.cancel(id);
                return;
            case 6:
                m.kill(id);
                return;
            case 7:
                m.set_time_limit(id, std::chrono::microseconds(x.below(2000)));
                return;
            case 8:
                m.complete(sequences[x.below(slot_count)], 3);
                return;
            case 9:
                if (m.start(id)) static_cast<void>(m.find(id).operator bool());
                return;
            case 10: {
                const managed_handle<> h = m.find(id);
                if (h) static_cast<void>(h.status());
                return;
            }
            default:
                if (x.one_in(40)) {
                    m.stop_all(weft::stop_reason::user, std::chrono::microseconds(x.below(300)));
                    if (x.one_in(2)) std::this_thread::yield();
                    m.restart();
                } else if (x.one_in(20)) {
                    static_cast<void>(m.wait_until_idle(weft::steady_now()));
                } else if (x.one_in(20)) {
                    m.for_each([&](const managed_handle<>& h) { m.resume(h.id(), 1); });
                }
        }
    }
};

std::uint64_t storm_manager(random& x) {
    static loop_thread there;
    static weft::pool pool({.thread_count = 2});
    storm_round r(pool, there.loop(),
                  {.on = pool,
                   .timers = &there.loop(),
                   .resolution = 100us,
                   .grace = std::chrono::microseconds(x.below(2) * 300),
                   .max_live_count = x.one_in(3) ? 8 + x.below(64) : weft::unlimited,
                   .shard_count = std::size_t{1} << x.below(4)});
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t)
        threads.emplace_back([&r, seed = x.next()] {
            random mine(seed);
            for (std::uint64_t n = 100 + mine.below(400); n != 0; --n) r.one(mine);
        });
    for (auto& t : threads) t.join();
    r.m.stop_all(weft::stop_reason::shutdown, x.one_in(2) ? 0us : 500us);
    STORM_CHECK(r.m.spawn([] {}).error() == weft::errc::closed);
    STORM_CHECK(r.m.wait_until_idle(weft::after(weft::steady_now(), 60s)).has_value());
    r.m.check();
    const weft::manager_stats s = r.m.stats();
    STORM_CHECK(s.live_count == 0 && s.deadline_count == 0 && s.awaited_reply_count == 0);
    STORM_CHECK(s.done_count + s.cancelled_count + s.killed_count + s.timed_out_count == r.spawned);
    STORM_CHECK(r.hooks_called == r.hooks_set);
    STORM_CHECK(r.begun == r.gone);
    STORM_CHECK(r.joins == r.answers);
    return r.operations;
}

}  // namespace

int main(int argc, char** argv) {
    return weft::testing::storm::run(argc, argv, "manager", storm_manager);
}
