// Storm: trees of fibers on a loop and on a pool, which spawn, join, fail, are stopped, run into
// deadlines and are killed with their loop. Every frame of them is destroyed, once; each local that
// was made is too; the nursery of a tree waits for all of it, and what leaves it is an error that
// was thrown in it.
#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <optional>

#include "test/storm/storm.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::storm::random;

// Of a round.
std::atomic<std::int64_t> frames{0};
std::atomic<std::int64_t> locals{0};
std::atomic<std::uint64_t> begun{0};
std::atomic<std::uint64_t> thrown{0};

struct frame {
    frame() noexcept { frames.fetch_add(1, std::memory_order_relaxed); }
    frame(const frame&) = delete;
    ~frame() { frames.fetch_sub(1, std::memory_order_relaxed); }
};
struct local {
    std::uint64_t of = 0;
    local() noexcept { locals.fetch_add(1, std::memory_order_relaxed); }
    local(const local&) = delete;
    ~local() { locals.fetch_sub(1, std::memory_order_relaxed); }
};
weft::fiber_local<local> mine;

struct error {
    std::uint64_t tree;
};

// The state of a whole tree.
struct tree {
    std::uint64_t id;
    weft::mutex m;
    std::uint64_t inside = 0;  // under m
};

struct alone {
    tree& in;
    explicit alone(tree& t) noexcept : in(t) { STORM_CHECK(++in.inside == 1); }
    alone(const alone&) = delete;
    ~alone() { STORM_CHECK(--in.inside == 0); }
};

void wait_somehow(tree& t, random& r) {
    switch (r.below(5)) {
        case 0:
            weft::this_fiber::yield();
            break;
        case 1:
            weft::this_fiber::sleep_for(weft::duration(1000 * r.below(300)));
            break;
        case 2: {
            const std::lock_guard held(t.m);
            const alone here(t);
            if (r.one_in(4)) weft::this_fiber::yield();
            break;
        }
        case 3: {
            const weft::timeout_scope limit(weft::duration(1000 * r.below(200)));
            try {
                weft::this_fiber::sleep_for(weft::duration(1000 * r.below(400)));
            } catch (const weft::stopped&) {
                if (!limit.has_expired()) throw;
            }
            break;
        }
        default: {
            const weft::shield s;
            weft::this_fiber::yield();
        }
    }
}

void grow(tree& t, random r, int depth, bool migratable) {
    const frame f;
    begun.fetch_add(1, std::memory_order_relaxed);
    if (r.one_in(2)) mine->of = t.id;
    wait_somehow(t, r);
    if (depth > 0) {
        std::optional<std::uint64_t> caught;
        try {
            weft::nursery n;
            for (std::uint64_t i = r.below(4); i > 0; --i) {
                auto child = n.spawn([&t, some = random(r.next()), depth,
                                      migratable] { grow(t, some, depth - 1, migratable); },
                                     weft::fiber_options{.migratable = migratable});
                if (r.one_in(8)) child.request_stop();
                if (r.one_in(8)) child.get();
            }
            if (r.one_in(3)) wait_somehow(t, r);
            if (r.one_in(2)) n.join();
        } catch (const error& e) {
            caught = e.tree;
        }
        if (caught) {
            STORM_CHECK(*caught == t.id);  // of its own tree
            if (r.one_in(2)) throw error{t.id};
        }
    }
    if (mine.has_value() && mine->of != 0) STORM_CHECK(mine->of == t.id);
    if (r.one_in(12)) {
        thrown.fetch_add(1, std::memory_order_relaxed);
        throw error{t.id};
    }
}

// Some are waited for, and some are stopped.
class forest {
public:
    forest(random& r, weft::scheduler* on, bool migratable) {
        for (std::uint64_t i = 1; i <= trees; ++i) {
            planted& p = all_.emplace_back(i);
            p.root = weft::fiber(
                [&p, some = random(r.next()), migratable] { grow(p.t, some, 3, migratable); },
                {.on = *on, .migratable = migratable});
        }
    }
    void stop_some(random& r) {
        for (planted& p : all_)
            if (r.one_in(3)) p.root.request_stop();
    }
    void gather() {
        for (planted& p : all_) {
            try {
                static_cast<void>(p.root.join());
            } catch (const error& e) {
                STORM_CHECK(e.tree == p.t.id);
                STORM_CHECK(thrown.load() > 0);
            }
        }
    }

private:
    static constexpr std::uint64_t trees = 50;
    struct planted {
        tree t;
        weft::fiber root;
        explicit planted(std::uint64_t id) : t{id, {}} {}
    };
    std::list<planted> all_;
};

void on_a_loop(random& r, bool is_killed) {
    std::optional<forest> f;
    {
        weft::loop l;
        f.emplace(r, &l, false);
        if (is_killed) {
            for (std::uint64_t i = r.below(20); i > 0; --i) l.run_once(weft::steady_now() + 50us);
        } else {
            l.post([&] { f->stop_some(r); });
            l.run();
        }
    }  // what is still live in it is ended
    f->gather();
}

void on_a_pool(weft::pool& p, random& r) {
    forest f(r, &p, r.one_in(2));
    if (r.one_in(2)) f.stop_some(r);
    f.gather();
    p.wait_until_idle();
}

std::uint64_t round(random& r) {
    static weft::pool p(2);
    begun = 0;
    thrown = 0;
    if (r.one_in(3))
        on_a_pool(p, r);
    else
        on_a_loop(r, r.one_in(3));
    STORM_CHECK(frames.load() == 0);
    STORM_CHECK(locals.load() == 0);
    return begun.load();
}

}  // namespace

int main(int argc, char** argv) { return weft::testing::storm::run(argc, argv, "fibers", round); }
