// weft/io/detail/io_entry.hpp and .cpp and watcher_set, with drivers of each kind and a small
// system as their environment. The system has one file, which holds bytes and has one descriptor,
// open or closed. A driver is notified that bytes have arrived (edge), checks for the awaited
// readiness (level), or is given the call (completion). The walks search for a call on a closed
// descriptor, a byte that is never read, and a descriptor that is closed twice or never.
//
// All walks are bounded by deviations: their bodies have two to four threads, each of many steps.
#include "weft/io/detail/io_entry.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <mutex>

#include "model/actor.hpp"
#include "model/names.hpp"
#include "weft/io/io_driver.hpp"

namespace {

using namespace model::names;
using weft::detail::io_entry;

constexpr auto relaxed = std::memory_order_relaxed;

// The system: one descriptor. Its words are the system's own, and order nothing for the caller.
struct small_system {
    model::var<int> number{1};  // a call reads it, a close writes it: they race unless ordered
    weft::atomic<int> is_open{1};
    weft::atomic<int> bytes{0};
    int given_back = 0;

    int read() {
        model::require(number.read() == 1, "a call is made on a number that is open");
        for (int n = bytes.load(relaxed); n != 0;)
            if (bytes.compare_exchange_strong(n, n - 1, relaxed, relaxed)) return 1;
        return -EAGAIN;
    }
    void close() {
        model::require(number.read() == 1, "the number is given back once");
        number.write(0);
        is_open.store(0, std::memory_order_release);
        ++given_back;
    }
    void open() { number.write(1); }
};
small_system* the_system = nullptr;

enum class kind { edge, level, completion };

class small_driver final : public weft::io_driver {
public:
    small_driver(kind k, io_entry& e, small_system& s)
        : io_driver(k == kind::completion, k == kind::level), kind_(k), entry_(e), system_(s) {}

    // Run by a thread of its own: notifies the entry that bytes have come.
    void tell() {
        for (;;) {
            model::wait_until([&] { return has_to_tell() || over.load(relaxed) != 0; });
            if (over.load(relaxed) != 0) return;
            if (!has_to_tell()) continue;  // another driver was first
            pending_.store(0, relaxed);
            if (kind_ == kind::level && entry_.wanted(generation_.load(relaxed), *this) == 0)
                continue;
            entry_.notify(generation_.load(relaxed), weft::detail::flags_of_poll(POLLIN), this);
        }
    }
    // By the system.
    void bytes_came() {
        if (kind_ == kind::edge && is_watching_.load() != 0)
            pending_.store(1, std::memory_order_release);
    }

    const char* name() const noexcept override { return "small"; }
    bool wait(weft::time_point) noexcept override { return true; }
    void wake() noexcept override {
        {
            const std::lock_guard not_under_it(entry_.lock);
        }
        model::require(is_there.read() == 1, "it is woken while it is there");
        ++woken;
    }
    weft::time_point now() const noexcept override { return {}; }
    int native_handle() noexcept override { return -1; }
    std::error_code watch(io_entry&, std::uint32_t generation) noexcept override {
        generation_.store(generation, relaxed);
        ++watched;
        // Readiness at the time of the call is delivered as well. The system orders the watch and
        // the arrival.
        is_watching_.store(1);
        if (kind_ == kind::edge && system_.bytes.load() != 0)
            pending_.store(1, std::memory_order_release);
        return {};
    }
    void deregister(io_entry&, std::uint32_t, bool) noexcept override {
        is_watching_.store(0, relaxed);
        ++forgotten;
    }
    void enlisted() noexcept override {
        if (kind_ == kind::level) pending_.store(1, std::memory_order_release);
    }
    void cancel_calls(io_entry&, std::uint32_t) noexcept override { cancelled.store(1, relaxed); }

    // The end of its destructor, as io_driver's: nothing watches by it any more.
    void end(bool waits) {
        entry_.deregister_driver(*this);
        if (waits) await_letting_go();
        is_there.write(0);
    }

    int watched = 0;
    int forgotten = 0;
    int woken = 0;
    model::var<int> is_there{1};
    weft::atomic<int> cancelled{0};
    weft::atomic<int> over{0};

private:
    bool has_to_tell() const {
        if (pending_.load(std::memory_order_acquire) == 0) return false;
        return kind_ == kind::edge || system_.bytes.load(std::memory_order_acquire) != 0;
    }

    const kind kind_;
    io_entry& entry_;
    small_system& system_;
    weft::atomic<std::uint32_t> generation_{0};
    weft::atomic<int> is_watching_{0};
    weft::atomic<int> pending_{0};
};

struct world {
    world() { the_system = &system; }
    ~world() { the_system = nullptr; }

    small_system system;
    io_entry entry;
};

constexpr int was_closed = -1;

// What io_operation does, with readiness: 1, or was_closed.
int read_one(world& w, std::uint64_t generation, model::actor& p, weft::io_driver& d) {
    struct place : weft::detail::io_wait_node {
        explicit place(io_entry& e) : of(e) {}
        io_entry& of;
    };
    io_entry& e = w.entry;
    for (;;) {
        if (!e.is_unready(generation, io_entry::readable)) {
            if (!e.enter(generation)) return was_closed;
            const std::uint64_t seen = e.look();
            const int n = w.system.read();
            if (n == -EAGAIN) e.spend(seen, io_entry::readable);
            e.leave();
            if (n != -EAGAIN) return n;
            continue;
        }
        place node(e);
        p.wait([&](weft::waiter& waits) {
            node.owner = &waits;
            waits.enlist("a byte", &e, &node, [](weft::waiter& gone) noexcept {
                auto& self = gone.operation<place>();
                self.of.cancel(self, true);
            });
            return e.enlist(node, generation, io_entry::readable, d) == io_entry::stands;
        });
    }
}

// What it does with completion; the call is made here, when there is something, or it is ended.
int call_one(world& w, std::uint64_t generation, small_driver& d) {
    io_entry& e = w.entry;
    if (!e.enter(generation)) return was_closed;
    model::require(e.be_served_by(d), "there is memory");
    model::wait_until(
        [&] { return w.system.bytes.load(relaxed) != 0 || d.cancelled.load(relaxed) != 0; });
    const int n = w.system.read();
    e.leave();
    return n == -EAGAIN ? was_closed : n;
}

void write_one(world& w, std::initializer_list<small_driver*> all) {
    w.system.bytes.fetch_add(1);
    for (small_driver* d : all) d->bytes_came();
}

// ---- readers and a writer

report read_beside_events(kind k, int readers, int bytes, const model::options& o) {
    return explore(
        [=](execution& run) {
            world w;
            small_driver d(k, w.entry, w.system);
            const std::uint64_t g = w.entry.open(0);
            model::actor p[2];
            weft::atomic<int> left{readers};
            for (int i = 0; i != readers; ++i)
                run.thread("reader", [&, i] {
                    for (int n = 0; n != bytes / readers; ++n)
                        model::require(read_one(w, g, p[i], d) == 1, "it is read");
                    if (left.fetch_sub(1, relaxed) == 1) d.over.store(1, relaxed);
                });
            run.thread("driver", [&] { d.tell(); });
            run.thread("writer", [&] {
                for (int n = 0; n != bytes; ++n) write_one(w, {&d});
            });
            run.go();
            for (model::actor& each : p) each.check();
            w.entry.close(g);
            model::require(w.system.given_back == 1, "the number is given back");
        },
        o);
}

TEST(io_entry, loses_no_byte_that_arrives_during_an_empty_read) {
    expect_right(read_beside_events(kind::edge, 1, 2, {.deviations = 3}), bounded);
    expect_right(read_beside_events(kind::level, 1, 2, {.deviations = 3}), bounded);
    expect_right(read_beside_events(kind::edge, 2, 2, {.deviations = 1}), bounded);
}

// ---- closing

report close_beside(kind k, const model::options& o) {
    return explore(
        [=](execution& run) {
            world w;
            small_driver d(k, w.entry, w.system);
            const std::uint64_t g = w.entry.open(0);
            model::actor p;
            run.thread("reader", [&] {
                const int n = k == kind::completion ? call_one(w, g, d) : read_one(w, g, p, d);
                model::require(n == 1 || n == was_closed, "it is read, or told");
                d.over.store(1, relaxed);
            });
            run.thread("driver", [&] { d.tell(); });
            run.thread("writer", [&] { write_one(w, {&d}); });
            run.thread("closer", [&] {
                model::require(w.entry.close(g), "it is closed once");
                model::require(!w.entry.close(g), "and not again");
            });
            run.go();
            p.check();
            model::require(w.system.given_back == 1, "the number is given back");
            model::require(d.watched == d.forgotten, "what watches is told of the end");
        },
        o);
}

TEST(io_entry, wakes_waiters_on_close_and_frees_fd_after_the_last_call) {
    for (const kind k : {kind::edge, kind::level, kind::completion})
        expect_right(close_beside(k, {.deviations = 2, .most_schedules = 500'000}), bounded);
}

// A driver that has calls is woken for their end, without the lock, and is not destroyed before.
report close_beside_the_end_of_its_driver(bool waits, const model::options& o) {
    return explore(
        [=](execution& run) {
            world w;
            small_driver d(kind::completion, w.entry, w.system);
            const std::uint64_t g = w.entry.open(0);
            model::require(w.entry.enter(g) && w.entry.be_served_by(d), "it has a call");
            run.thread("closer", [&] { w.entry.close(g); });
            run.thread("owner", [&] { d.end(waits); });
            run.go();
            model::require(d.woken == d.cancelled.load(relaxed), "it is woken for what it is told");
            w.entry.leave();
        },
        o);
}

TEST(io_entry, keeps_a_driver_alive_while_waking_it_for_a_close) {
    expect_right(close_beside_the_end_of_its_driver(true, {.deviations = 4}), bounded);
}

// Wrong: it is destroyed when it is forgotten.
TEST(io_entry, checker_finds_wake_of_a_destroyed_driver) {
    expect_found(close_beside_the_end_of_its_driver(false, {.deviations = 3}), "");
}

// Two closers: one of them does it.
TEST(io_entry, is_closed_by_one_of_two_closers) {
    const auto closed_twice = [](execution& run) {
        world w;
        const std::uint64_t g = w.entry.open(0);
        weft::atomic<int> done{0};
        for (int i = 0; i != 2; ++i)
            run.thread("closer", [&] { done.fetch_add(w.entry.close(g) ? 1 : 0, relaxed); });
        run.thread("caller", [&] {
            if (!w.entry.enter(g)) return;
            static_cast<void>(w.system.read());
            w.entry.leave();
        });
        run.go();
        model::require(done.load(relaxed) == 1 && w.system.given_back == 1, "once");
    };
    expect_right(explore(closed_twice, {.deviations = 3}), bounded);
}

// ---- the descriptor is opened again

report reopen(kind k, const model::options& o) {
    return explore(
        [=](execution& run) {
            world w;
            small_driver d(k, w.entry, w.system);
            const std::uint64_t first = w.entry.open(0);
            model::actor p[2];
            run.thread("late reader", [&] {
                const int n = read_one(w, first, p[0], d);
                model::require(n == 1 || n == was_closed, "it is read, or told");
            });
            run.thread("driver", [&] { d.tell(); });
            run.thread("owner", [&] {
                w.entry.close(first);
                // The system assigns the descriptor again once it is closed.
                model::wait_until(
                    [&] { return w.system.is_open.load(std::memory_order_acquire) == 0; });
                w.system.open();
                const std::uint64_t second = w.entry.open(0);
                model::require(second != first, "they are told apart");
                w.entry.spend(w.entry.look(), io_entry::readable);
                write_one(w, {&d});
                model::require(read_one(w, second, p[1], d) == 1, "it is read in the new one");
                w.entry.close(second);
                d.over.store(1, relaxed);
            });
            run.go();
            for (model::actor& each : p) each.check();
            model::require(w.system.given_back == 2, "each opening gives it back");
        },
        o);
}

TEST(io_entry, rejects_a_late_call_after_its_fd_is_reused) {
    expect_right(reopen(kind::edge, {.deviations = 2}), bounded);
    expect_right(reopen(kind::level, {.deviations = 2}), bounded);
}

// ---- three loops

TEST(io_entry, notifies_every_watching_driver_of_its_close) {
    const auto three = [](execution& run) {
        world w;
        small_driver a(kind::edge, w.entry, w.system);
        small_driver b(kind::edge, w.entry, w.system);
        small_driver c(kind::edge, w.entry, w.system);
        small_driver* const all[] = {&a, &b, &c};
        const std::uint64_t g = w.entry.open(0);
        w.entry.spend(w.entry.look(), io_entry::readable);
        model::actor p[3];
        for (int i = 0; i != 3; ++i)
            run.thread("reader", [&, i] {
                model::require(read_one(w, g, p[i], *all[i]) == was_closed, "it is told");
                all[i]->over.store(1, relaxed);
            });
        run.thread("closer", [&] { w.entry.close(g); });
        run.go();
        for (model::actor& each : p) each.check();
        for (const small_driver* d : all)
            model::require(d->watched == d->forgotten && d->watched <= 1, "once each");
        model::require(w.system.given_back == 1, "the number is given back");
    };
    expect_right(explore(three, {.deviations = 1}), bounded);
}

// Each reader is notified by the driver by which it waits; a driver without a waiter notifies the
// other driver's waiters.
report read_by_two_drivers(kind k, bool one_is_told, const model::options& o) {
    return explore(
        [=](execution& run) {
            world w;
            small_driver a(k, w.entry, w.system);
            small_driver b(k, w.entry, w.system);
            small_driver* const all[] = {&a, &b};
            const std::uint64_t g = w.entry.open(0);
            w.entry.spend(w.entry.look(), io_entry::readable);
            model::actor p[2];
            weft::atomic<int> left{2};
            for (int i = 0; i != 2; ++i)
                run.thread("reader", [&, i] {
                    model::require(read_one(w, g, p[i], *all[i]) == 1, "it is read");
                    if (left.fetch_sub(1, relaxed) == 1)
                        for (small_driver* d : all) d->over.store(1, relaxed);
                });
            for (small_driver* d : all) run.thread("driver", [d] { d->tell(); });
            run.thread("writer", [&] {
                for (int n = 0; n != 2; ++n)
                    if (one_is_told)
                        write_one(w, {&a});
                    else
                        write_one(w, {&a, &b});
            });
            run.go();
            for (model::actor& each : p) each.check();
            w.entry.close(g);
        },
        o);
}

TEST(io_entry, notifies_each_waiter_through_its_own_driver) {
    expect_right(read_by_two_drivers(kind::edge, false, {.random_schedules = 20'000}), bounded);
    expect_right(read_by_two_drivers(kind::level, false, {.random_schedules = 20'000}), bounded);
}

// Wrong: a system that notifies only one of two drivers.
TEST(io_entry, checker_finds_lost_byte_when_one_driver_is_notified) {
    expect_found(read_by_two_drivers(kind::edge, true, {.deviations = 2}), "deadlock");
}

// ---- descriptors of the program's own

TEST(io_entry, is_closed_with_its_last_borrower) {
    const auto borrowed = [](execution& run) {
        world w;
        for (int i = 0; i != 2; ++i)
            run.thread("borrower", [&] {
                bool counts = false;
                const std::uint64_t g = w.entry.borrow(counts);
                model::require(g != 0 && counts, "it is borrowed");
                model::require(w.entry.enter(g), "it is open while it is");
                w.entry.leave();
                w.entry.release_borrowed(g);
            });
        run.go();
        model::require((w.entry.life.load(relaxed) & io_entry::closed) != 0, "it is closed");
        model::require(w.system.given_back == 0, "the number is the program's");
    };
    expect_right(explore(borrowed, {.deviations = 4}), bounded);
}

// ---- what the walks would find

// Wrong: what was known is forgotten whatever has come meanwhile.
TEST(io_entry, checker_finds_lost_byte_when_an_event_is_dropped) {
    const auto forgets = [](execution& run) {
        world w;
        small_driver d(kind::edge, w.entry, w.system);
        const std::uint64_t g = w.entry.open(0);
        model::actor p;
        run.thread("reader", [&] {
            io_entry& e = w.entry;
            while (!e.is_unready(g, io_entry::readable)) {
                model::require(e.enter(g), "it is open");
                const int n = w.system.read();
                if (n == -EAGAIN) e.spend(e.look(), io_entry::readable);
                e.leave();
                if (n != -EAGAIN) return d.over.store(1, relaxed);
            }
            model::require(read_one(w, g, p, d) == 1, "it is read");
            d.over.store(1, relaxed);
        });
        // The driver watches the entry already, and notifies of the byte only once.
        static_cast<void>(d.watch(w.entry, static_cast<std::uint32_t>(g)));
        static_cast<void>(w.entry.drivers.add(d, weft::detail::watcher_set::watches));
        run.thread("driver", [&] {
            write_one(w, {&d});
            w.entry.notify(g, io_entry::readable);
        });
        run.go();
    };
    expect_found(explore(forgets, {.deviations = 3}), "deadlock");
}

// Wrong: a thread that is no user of the entry makes a call.
TEST(io_entry, checker_finds_call_on_a_closed_fd_without_entering) {
    const auto stays_out = [](execution& run) {
        world w;
        const std::uint64_t g = w.entry.open(0);
        run.thread("caller", [&] {
            if (w.entry.is_open(g)) static_cast<void>(w.system.read());
        });
        run.thread("closer", [&] { w.entry.close(g); });
        run.go();
    };
    expect_found(explore(stays_out, {.deviations = 3}), "");
}

}  // namespace

// The parts of the driver that it has no use for here.
namespace weft {

io_driver::io_driver(bool completes, bool asks_anew)
    : driver(this), completes_(completes), asks_anew_(asks_anew), buffers_(nullptr) {}
io_driver::~io_driver() = default;

namespace detail {

void give_number_back(int) noexcept { the_system->close(); }

}  // namespace detail
}  // namespace weft
