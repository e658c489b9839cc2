// Items through channels of every kind (bounded, unbuffered, unbounded), sent and received by
// fibers on a loop, fibers in a pool and plain threads, one by one, with deadlines, and by selects
// over eight cases, while some are stopped and some channels are closed early.
//
// The law: what was sent is received once, and what was not sent is not; the items of a sender
// leave a channel in the order in which they came; every agent ends.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "test/storm/storm.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/select.hpp"
#include "weft/sync/unbounded_channel.hpp"
#include "weft/sync/wait_group.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::storm::random;

constexpr std::size_t bounded_count = 6;    // channels that make a sender wait
constexpr std::size_t unbounded_count = 2;  // and those that do not
constexpr std::size_t channel_count = bounded_count + unbounded_count;
constexpr std::size_t most_parties = 10;

struct item {
    std::uint32_t sender;
    std::uint32_t number;
};

class round_of {
public:
    explicit round_of(random& r, weft::scheduler& on_loop, weft::scheduler& on_pool)
        : r_(r), on_loop_(on_loop), on_pool_(on_pool), party_count_(3 + r.below(6)) {
        for (std::size_t i = 0; i < bounded_count; ++i) bounded_.emplace_back(capacity(r));
        for (std::size_t i = 0; i < unbounded_count; ++i) unbounded_.emplace_back();
    }

    std::uint64_t run() {
        // One alone receives to the end, so that no sender waits for ever.
        begin(living_drains_, 0, [this](random& mine) { drain(0, mine); });
        for (std::size_t p = 1; p < party_count_; ++p)
            begin(living_sends_, p, [this, p](random& mine) { send_and_receive(p, mine); });
        for (std::uint64_t n = r_.below(4); n != 0; --n) disturb();
        STORM_CHECK(living_sends_.wait(30s) && "every party ends");
        for (auto& c : bounded_) c.close();
        for (auto& c : unbounded_) c.close();
        STORM_CHECK(living_drains_.wait(30s) && "every party ends");
        for (weft::fiber& f : fibers_) f.join();
        for (std::thread& t : threads_) t.join();
        return judge();
    }

private:
    static std::size_t capacity(random& r) { return r.one_in(3) ? 0 : 1 + r.below(8); }

    // What one agent has done; its own, until it has ended.
    struct agent {
        std::vector<bool> sent;  // by number
        std::vector<item> received;
        std::array<std::array<std::int64_t, most_parties>, channel_count> last{};
    };

    template <class Body>
    void begin(weft::wait_group& living, std::size_t p, Body body) {
        living.add();
        for (auto& of_channel : parties_[p].last) of_channel.fill(-1);
        auto whole = [&living, body, seed = r_.next()] {
            random mine(seed);
            try {
                body(mine);
            } catch (const weft::stopped&) {
            }
            living.done();
        };
        // The first cannot be stopped, as a thread's flow is not known.
        const std::uint64_t where = p == 0 ? 0 : r_.below(5);
        if (where == 0)
            threads_.emplace_back(whole);
        else
            fibers_.emplace_back(whole, weft::fiber_options{.on = where < 3 ? on_loop_ : on_pool_,
                                                            .migratable = where == 4});
    }

    void disturb() {
        for (std::uint64_t n = r_.below(200); n != 0; --n) std::this_thread::yield();
        if (r_.one_in(2) && !fibers_.empty())
            fibers_[r_.below(fibers_.size())].request_stop();
        else if (r_.one_in(4))
            bounded_[r_.below(bounded_count)].close();
        else if (r_.one_in(8))
            unbounded_[r_.below(unbounded_count)].close();
    }

    // -- of an agent ----------------------------------------------------------------------------

    void took(std::size_t p, std::size_t channel, item x) {
        STORM_CHECK(x.sender < party_count_);
        std::int64_t& last = parties_[p].last[channel][x.sender];
        STORM_CHECK(last < x.number && "a sender's items come in order");
        last = x.number;
        parties_[p].received.push_back(x);
    }
    auto on_recv_bounded(std::size_t p, std::size_t c) {
        return weft::on_recv(bounded_[c], [this, p, c](item x) { took(p, c, x); });
    }
    auto on_recv_unbounded(std::size_t p, std::size_t c) {
        return weft::on_recv(unbounded_[c],
                             [this, p, c](item x) { took(p, bounded_count + c, x); });
    }

    void drain(std::size_t p, random& mine) {
        for (;;) {
            const std::size_t i =
                weft::select(on_recv_bounded(p, 0), on_recv_bounded(p, 1), on_recv_bounded(p, 2),
                             on_recv_bounded(p, 3), on_recv_bounded(p, 4), on_recv_bounded(p, 5),
                             on_recv_unbounded(p, 0), on_recv_unbounded(p, 1));
            if (i == weft::select_none) return;
            if (mine.one_in(64)) std::this_thread::yield();
        }
    }

    void send_and_receive(std::size_t p, random& mine) {
        agent& me = parties_[p];
        const std::size_t count = 200 + mine.below(2'000);
        const bool sends = mine.below(4) != 0;
        me.sent.reserve(count);
        for (std::size_t n = 0; n < count; ++n) {
            const item x{static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(me.sent.size())};
            if (sends) me.sent.push_back(false);
            const std::size_t c = mine.below(bounded_count);
            const auto soon = std::chrono::microseconds(mine.below(100));
            bool done = false;
            if (!sends)
                receive(p, c, soon, mine);
            else if (const std::uint64_t how = mine.below(16); how < 4)
                done = !!bounded_[c].send(x);
            else if (how < 7)
                done = !!bounded_[c].try_send(item(x));
            else if (how < 10)
                done = !!unbounded_[c % unbounded_count].send(item(x));
            else if (how == 10)
                done = !!bounded_[c].send(x, soon);
            else
                select_eight(p, c, x, done, soon, mine);
            if (done) me.sent[x.number] = true;
            if (mine.one_in(256)) weft::await(weft::sleep_for(0s));
        }
    }

    void receive(std::size_t p, std::size_t c, std::chrono::microseconds soon, random& mine) {
        weft::result<item> x = mine.one_in(16) ? bounded_[c].recv(soon) : bounded_[c].try_recv();
        if (x) took(p, c, *x);
        const std::size_t u = c % unbounded_count;
        if (auto y = unbounded_[u].try_recv()) took(p, bounded_count + u, *y);
    }

    // Sends x by one of four, or receives by one of four.
    void select_eight(std::size_t p, std::size_t c, item x, bool& done,
                      std::chrono::microseconds soon, random& mine) {
        const auto at = [c](std::size_t n) { return (c + n) % bounded_count; };
        const auto to = [&](std::size_t n) {
            return weft::on_send(bounded_[at(n)], x, [&done] { done = true; });
        };
        if (!mine.one_in(8))
            weft::select(to(0), to(1), to(2), to(3), on_recv_bounded(p, at(3)),
                         on_recv_bounded(p, at(4)), on_recv_bounded(p, at(5)),
                         on_recv_unbounded(p, 0));
        else
            weft::select(to(0), to(1), to(2), on_recv_bounded(p, at(0)), on_recv_bounded(p, at(4)),
                         on_recv_bounded(p, at(5)), on_recv_unbounded(p, 1),
                         weft::on_timeout(soon, [] {}));
    }

    // -- after all ------------------------------------------------------------------------------

    std::uint64_t judge() {
        std::uint64_t operations = 0;
        std::array<std::vector<unsigned char>, most_parties> received;
        for (std::size_t p = 0; p < party_count_; ++p) received[p].resize(parties_[p].sent.size());
        for (std::size_t p = 0; p < party_count_; ++p)
            for (const item& x : parties_[p].received) {
                STORM_CHECK(x.number < received[x.sender].size());
                STORM_CHECK(++received[x.sender][x.number] == 1 && "no item comes twice");
                ++operations;
            }
        for (std::size_t p = 0; p < party_count_; ++p)
            for (std::size_t n = 0; n < received[p].size(); ++n) {
                STORM_CHECK(parties_[p].sent[n] == (received[p][n] != 0));
                ++operations;
            }
        return operations;
    }

    random& r_;
    weft::scheduler& on_loop_;
    weft::scheduler& on_pool_;
    const std::size_t party_count_;
    std::deque<weft::channel<item>> bounded_;
    std::deque<weft::unbounded_channel<item>> unbounded_;
    std::array<agent, most_parties> parties_;
    weft::wait_group living_sends_;
    weft::wait_group living_drains_;
    std::vector<weft::fiber> fibers_;
    std::vector<std::thread> threads_;
};

std::uint64_t one(random& r) {
    static weft::testing::loop_thread loop;
    static weft::pool pool(2);
    return round_of(r, loop.loop(), pool).run();
}

}  // namespace

int main(int argc, char** argv) { return weft::testing::storm::run(argc, argv, "channels", one); }
