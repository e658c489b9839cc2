// Storm: a wait ends by its event, by its deadline or by a stop, exactly one of them is reported,
// and a deadline never early.
//
// A thousand waits on one semaphore, by fibers of a loop and by this thread, with deadlines that
// come at about the same time as permits from another thread and stops from the loop. A permit that
// was granted to a wait which reports another end would be lost: all are counted.
#include <chrono>
#include <list>
#include <thread>

#include "test/storm/storm.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sync/counting_semaphore.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::storm::random;

constexpr std::uint64_t waits_of_a_round = 1000;

// What a round counts; `acquired` of one thread each.
struct totals {
    std::uint64_t acquired = 0;
    std::uint64_t late = 0;
    std::uint64_t stopped = 0;
};

void wait_once(weft::counting_semaphore<>& permits, weft::time_point deadline, totals& t,
               const bool* asked) {
    try {
        if (permits.try_acquire_until(deadline)) {
            ++t.acquired;
        } else {
            STORM_CHECK(weft::steady_now() >= deadline);
            ++t.late;
        }
    } catch (const weft::stopped& s) {
        STORM_CHECK(asked != nullptr && *asked);
        STORM_CHECK(s.reason == weft::stop_reason::user);
        ++t.stopped;
    }
}

std::uint64_t round(random& r) {
    weft::counting_semaphore<> permits(0);
    weft::loop l;
    totals of_fibers;
    totals of_thread;
    struct one {
        weft::fiber f;
        bool asked = false;
    };
    std::list<one> all;
    const auto within = [&r](weft::duration most) {
        return weft::steady_now() + weft::duration(static_cast<std::int64_t>(
                                        r.below(static_cast<std::uint64_t>(most.count()))));
    };
    for (std::uint64_t i = 0; i < waits_of_a_round; ++i) {
        one& o = all.emplace_back();
        const weft::time_point deadline = within(3ms);
        o.f = weft::fiber([&, deadline] { wait_once(permits, deadline, of_fibers, &o.asked); },
                          {.on = l});
    }
    weft::fiber stopper(
        [&] {
            for (one& o : all) {
                if (r.one_in(4)) {
                    o.asked = true;
                    o.f.request_stop();
                }
                if (r.one_in(16)) weft::this_fiber::yield();
            }
        },
        {.on = l});
    const std::uint64_t released = r.below(waits_of_a_round);
    const weft::time_point last = within(2ms);
    std::thread releaser([&permits, released, last, some = random(r.next())]() mutable {
        for (std::uint64_t i = 0; i < released; ++i) {
            permits.release();
            if (weft::steady_now() < last)
                for (std::uint64_t n = some.below(200); n > 0; --n) weft::detail::spin_pause();
        }
    });
    std::thread runner([&] { l.run(); });
    const std::uint64_t here = 8;
    for (std::uint64_t i = 0; i < here; ++i)
        wait_once(permits, weft::steady_now() + i * 40us, of_thread, nullptr);
    releaser.join();
    runner.join();
    for (one& o : all) o.f.join();
    stopper.join();
    std::uint64_t left = 0;
    while (permits.try_acquire()) ++left;
    STORM_CHECK(of_fibers.acquired + of_thread.acquired + left == released);
    STORM_CHECK(of_fibers.acquired + of_fibers.late + of_fibers.stopped == waits_of_a_round);
    STORM_CHECK(of_thread.acquired + of_thread.late == here);
    return waits_of_a_round + here;
}

}  // namespace

int main(int argc, char** argv) { return weft::testing::storm::run(argc, argv, "timeouts", round); }
