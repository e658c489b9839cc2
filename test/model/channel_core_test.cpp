// weft/sync/detail/channel_core.hpp under the interleavings of a few agents that send and receive
// as channel<T> does.
#include "weft/sync/detail/channel_core.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "model/actor.hpp"
#include "model/names.hpp"

namespace {

using namespace model::names;
using model::fate;
using weft::detail::channel_core;
using weft::detail::channel_node;
using weft::detail::channel_wait;
using weft::detail::transfer;

using wish = channel_node::wish;

// An item records the source and the target of each move as accesses, so that moves race if nothing
// orders them.
struct item {
    item(int s, int n) : sender(s), number(n) { place(this).write(0); }
    item(item&& other) noexcept : sender(other.sender), number(other.number) {
        static_cast<void>(place(&other).read());
        place(this).write(0);
    }
    ~item() { place(this).write(0); }

    static model::var<int>& place(const item* at) { return (*places)[at]; }
    static inline std::map<const item*, model::var<int>>* places = nullptr;

    int sender;
    int number;
};

class scene {
    std::map<const item*, model::var<int>> places_;  // outlives the items that are left in `core`

public:
    explicit scene(std::size_t capacity) : core(weft::detail::item_type_of<item>, capacity) {
        item::places = &places_;
    }

    // Sends up to so many, until the channel is closed.
    void send(std::size_t p, int count, fate f = fate::none) {
        for (int n = 0; n < count; ++n) {
            item x(static_cast<int>(p), n);
            const transfer t = send(p, x, f);
            if (t != transfer::done) return ended(t, f);
            ++sent_[p];
        }
    }
    // The same without a wait, as unbounded_channel<T> has it.
    void send_growing(std::size_t p, int count) {
        for (int n = 0; n < count; ++n) {
            item x(static_cast<int>(p), n);
            while (core.try_send(&x) != transfer::done) core.grow();
            ++sent_[p];
        }
    }
    // Receives until the channel is closed.
    void recv(std::size_t p, fate f = fate::none) {
        for (;;) {
            const transfer t = recv_one(p, f);
            if (t != transfer::done) return ended(t, f);
        }
    }
    transfer recv_one(std::size_t p, fate f = fate::none) {
        alignas(item) std::byte room[sizeof(item)];
        item* const slot = static_cast<item*>(static_cast<void*>(room));
        const bool at_once = core.recv_from_ring<item>(room) ||
                             (core.may(wish::recv) && core.try_recv(room) == transfer::done);
        const transfer t = at_once ? transfer::done : wait(p, wish::recv, room, f);
        if (t == transfer::done) {
            received_[p].push_back({static_cast<std::size_t>(slot->sender), slot->number});
            slot->~item();
        }
        return t;
    }
    void watch(std::size_t p) {
        channel_node n(core, wish::end, nullptr);
        parties_[p].wait([&](weft::waiter& w) { return core.start(n, w); });
        model::require(n.outcome == transfer::done, "it was told of the end");
    }

    // After all threads.
    void check() {
        for (model::actor& p : parties_) p.check();
        std::array<int, parties> taken{};
        for (const auto& of_one : received_) {
            std::array<int, parties> next{};
            for (auto [sender, number] : of_one) {
                model::require(number >= next[sender], "each sender's come in order");
                next[sender] = number + 1;
                ++taken[sender];
            }
        }
        int left = 0;
        for (std::size_t p = 0; p < parties; ++p) left += sent_[p] - taken[p];
        model::require(left == static_cast<int>(core.count()), "what was sent has come once");
        const bool closed = core.is_closed();
        model::require(core.may(wish::recv) == (closed || core.count() != 0), "the hint to recv");
        model::require(core.may(wish::send) == (closed || core.count() < core.capacity()),
                       "to send");
        model::require(core.may(wish::end) == (closed && core.count() == 0), "to watch");
    }

    channel_core core;

private:
    static constexpr std::size_t parties = 4;

    transfer send(std::size_t p, item& x, fate f) {
        if (core.send_to_ring(x)) return transfer::done;
        if (core.may(wish::send) && core.try_send(&x) == transfer::done) return transfer::done;
        return wait(p, wish::send, &x, f);
    }
    transfer wait(std::size_t p, wish what, void* slot, fate f) {
        channel_wait op(core, what, slot);
        if (!op.try_now()) parties_[p].wait([&](weft::waiter& w) { return op.start(w); }, f);
        return op.outcome();
    }
    static void ended(transfer t, fate f) {
        model::require(t == transfer::closed || f != fate::none, "only a close ends it");
    }

    struct origin {
        std::size_t sender;
        int number;
    };

    std::array<model::actor, parties> parties_;
    std::array<int, parties> sent_{};
    std::array<std::vector<origin>, parties> received_;
};

// Senders, each of so many items; receivers; and the thread that closes the channel: the first
// sender after its last item, or another thread at any time.
struct cast {
    std::size_t senders = 1;
    int items = 1;
    std::size_t receivers = 1;
    bool watcher = false;
    bool closer = false;
};

report send_and_close(std::size_t capacity, cast c, model::options o) {
    return explore(
        [=](execution& run) {
            scene s(capacity);
            std::size_t p = 0;
            for (std::size_t n = 0; n < c.senders; ++n, ++p)
                run.thread("sender", [&s, p, c] {
                    s.send(p, c.items);
                    if (p == 0 && !c.closer) s.core.close();
                });
            for (std::size_t n = 0; n < c.receivers; ++n, ++p)
                run.thread("receiver", [&s, p] { s.recv(p); });
            if (c.watcher) run.thread("watcher", [&s, p] { s.watch(p); });
            if (c.closer) run.thread("closer", [&s] { s.core.close(); });
            run.go();
            s.check();
            model::require(s.core.count() == 0, "receivers go on until it is empty");
        },
        o);
}

TEST(channel_core, delivers_each_item_once_and_in_order) {
    expect_right(send_and_close(0, {.items = 2}, {.deviations = 3}), bounded);
    expect_right(send_and_close(1, {.items = 2}, {.deviations = 3}), bounded);
}

TEST(channel_core, delivers_items_sent_before_close_and_wakes_all) {
    for (std::size_t capacity : {0u, 1u}) {
        expect_right(send_and_close(capacity, {.senders = 2}, {.deviations = 2}), bounded);
        expect_right(send_and_close(capacity, {.closer = true}, {.deviations = 2}), bounded);
    }
}

TEST(channel_core, delivers_an_item_to_one_of_two_receivers) {
    for (std::size_t capacity : {0u, 1u})
        expect_right(send_and_close(capacity, {.receivers = 2}, {.deviations = 2}), bounded);
}

TEST(channel_core, notifies_a_watcher_of_the_close) {
    for (std::size_t capacity : {0u, 1u})
        expect_right(send_and_close(capacity, {.watcher = true}, {.deviations = 2}), bounded);
}

TEST(channel_core, keeps_its_invariants_in_random_schedules) {
    const cast many = {.senders = 2, .items = 2, .receivers = 1, .closer = true};
    for (std::size_t capacity : {0u, 1u}) {
        const report r = send_and_close(capacity, many, {.random_schedules = 5'000, .seed = 3});
        EXPECT_TRUE(r.passed) << r.text;
    }
}

// The agent that cancels closes the channel, so that the other agent does not wait for it.
TEST(channel_core, transfers_all_or_nothing_when_a_wait_is_cancelled) {
    for (std::size_t capacity : {0u, 1u})
        for (fate f : {fate::deadline, fate::stop})
            for (bool receiver_gives_up : {false, true})
                expect_right(explore(
                                 [=](execution& run) {
                                     scene s(capacity);
                                     run.thread("sender", [&] {
                                         s.send(0, 2, receiver_gives_up ? fate::none : f);
                                         s.core.close();
                                     });
                                     run.thread("receiver", [&] {
                                         s.recv(1, receiver_gives_up ? f : fate::none);
                                         s.core.close();
                                     });
                                     run.go();
                                     s.check();
                                 },
                                 {.deviations = 3}),
                             bounded);
}

TEST(channel_core, grows_during_a_concurrent_receive) {
    expect_right(explore(
                     [](execution& run) {
                         scene s(1);
                         run.thread("sender", [&] {
                             s.send_growing(0, 3);
                             s.core.close();
                         });
                         run.thread("receiver", [&] { s.recv(1); });
                         run.go();
                         s.check();
                         model::require(s.core.count() == 0, "all has come");
                     },
                     {.deviations = 3}),
                 bounded);
}

TEST(channel_core, grows_for_two_concurrent_senders) {
    expect_right(explore(
                     [](execution& run) {
                         scene s(1);
                         for (std::size_t p : {0u, 1u})
                             run.thread("sender", [&s, p] { s.send_growing(p, 1 + int(p)); });
                         run.thread("receiver", [&] { s.recv_one(2); });
                         run.go();
                         s.check();
                     },
                     {.deviations = 2}),
                 bounded);
}

// No thread closes the channel: an item arrives only by an attempt at what is there, or by a queued
// operation. No receive is made for an item for which the channel has room.
TEST(channel_core, loses_no_wake_with_stale_hints) {
    for (int capacity : {0, 1})
        expect_right(explore(
                         [=](execution& run) {
                             scene s(static_cast<std::size_t>(capacity));
                             run.thread("sender", [&] { s.send(0, 1); });
                             run.thread("other", [&] { s.send(1, 1); });
                             run.thread("receiver", [&] {
                                 for (int n = capacity; n < 2; ++n) s.recv_one(2);
                             });
                             run.go();
                             s.check();
                         },
                         {.deviations = 2}),
                     bounded);
}

TEST(channel_core, hints_reflect_earlier_changes) {
    for (bool closes : {false, true})
        expect_right(explore([=](execution& run) {
            scene s(1);
            weft::atomic<bool> told{false};
            run.thread("changes", [&] {
                if (closes)
                    s.core.close();
                else
                    s.send(0, 1);
                told.store(true, std::memory_order_release);
            });
            run.thread("looks", [&] {
                if (!told.load(std::memory_order_acquire)) return;
                model::require(s.core.may(wish::recv), "there is something to receive");
                model::require(s.core.is_closed() == closes, "or the end");
            });
            run.go();
            s.check();
        }));
}

}  // namespace
