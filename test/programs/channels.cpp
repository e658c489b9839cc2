// What weft's channels do, as a trace that is the same in every run. channels.go is the same
// program in Go, function by function; channels_test.py compares what they print.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <list>
#include <memory>
#include <vector>

#include "weft/fiber/nursery.hpp"
#include "weft/run/run.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/select.hpp"

using namespace std::chrono_literals;

namespace {

using channel = weft::channel<int>;

const char* name_of(bool b) { return b ? "true" : "false"; }

// Each prime that comes out of the chain gets a filter of its own at the chain's end.
void sieve() {
    auto filter = [](channel& in, channel& out, int prime) {
        for (int n : in)
            if (n % prime != 0) out.send(n).value();
        out.close();
    };
    std::list<channel> chain(1);
    weft::nursery fibers;
    fibers.spawn([&numbers = chain.front()] {
        for (int n = 2; n < 300; ++n) numbers.send(n).value();
        numbers.close();
    });
    for (int prime = *chain.back().recv(); prime < 150; prime = *chain.back().recv()) {
        std::printf("sieve %d\n", prime);
        channel& in = chain.back();
        channel& out = chain.emplace_back();
        fibers.spawn([&in, &out, prime, filter] { filter(in, out, prime); });
    }
    for (int n : chain.back()) std::printf("sieve %d is left\n", n);
    fibers.join();
}

// Ten stages take an item each when the one before has had its own.
void fifo(std::size_t capacity) {
    channel numbers(capacity);
    std::array<channel, 11> turns;
    weft::nursery fibers;
    for (std::size_t stage = 0; stage < 10; ++stage)
        fibers.spawn([&numbers, &before = turns[stage], &after = turns[stage + 1]] {
            const int seen = *before.recv();
            after.send(seen * 10 % 9973 + *numbers.recv()).value();
        });
    fibers.spawn([&] {
        for (int n = 0; n < 10; ++n) numbers.send(n).value();
    });
    turns.front().send(1).value();
    std::printf("fifo %zu %d\n", capacity, *turns.back().recv());
    fibers.join();
}

void try_recv(channel& c) {
    if (auto n = c.try_recv())
        std::printf("recv %d true\n", *n);
    else if (n.error() == weft::errc::closed)
        std::puts("recv 0 false");
    else
        std::puts("recv would wait");
}

// Sends to a closed one are what panics in Go, and is an error in weft.
void try_send(channel& c, int n) {
    if (auto sent = c.try_send(n))
        std::printf("send %d\n", n);
    else if (sent.error() == weft::errc::closed)
        std::printf("send %d is refused: closed\n", n);
    else
        std::printf("send %d would wait\n", n);
}

// What does not wait, by the state of the channel.
void nonblock() {
    for (std::size_t capacity = 0; capacity < 4; ++capacity) {
        channel c(capacity);
        std::printf("nonblock %zu %zu\n", c.size(), c.capacity());
        try_recv(c);
        for (int n = 1; n < 4; ++n) try_send(c, n);
        try_recv(c);
        try_send(c, 4);
        c.close();
        try_send(c, 5);
        std::printf("holds %zu\n", c.size());
        for (int n = 0; n < 4; ++n) try_recv(c);
    }
}

// One case at a time can happen; which one goes round.
void select_one() {
    channel a(1), b(1), c, full(1), nobody, done;
    full.send(0).value();
    weft::nursery fibers;
    fibers.spawn([&] {
        for (int n : c) {
            std::printf("select other side %d\n", n);
            done.send(n).value();
        }
        done.close();
    });
    for (int round = 0; round < 8; ++round) {
        const int kind = round % 4;
        if (kind == 0) a.send(round).value();
        if (kind == 1) b.send(round).value();
        channel& to_c = kind == 2 ? c : nobody;
        const auto limit = kind == 3 ? weft::duration(1ms) : weft::duration(1min);
        weft::select(
            weft::on_recv(a, [](int n) { std::printf("select a %d\n", n); }),
            weft::on_recv(b, [](int n) { std::printf("select b %d\n", n); }),
            weft::on_send(full, round, [] { std::puts("select sent to what is full"); }),
            weft::on_send(to_c, round, [&] { std::printf("select c %d\n", *done.recv()); }),
            weft::on_timeout(limit, [] { std::puts("select after"); }));
    }
    c.close();
    std::printf("select done %s\n", name_of(done.recv().has_value()));
    fibers.join();
}

// What is closed is drained first, in order.
void drains() {
    channel c(5);
    for (int n = 0; n < 5; ++n) c.send(n * n).value();
    c.close();
    for (bool open = true; open;)
        weft::select(weft::on_recv(c, [](int n) { std::printf("drains %d\n", n); }),
                     weft::on_closed(c,
                                     [&] {
                                         std::puts("drains no more");
                                         open = false;
                                     }),
                     weft::on_timeout(1min, [] { std::puts("drains too slowly"); }));
}

// A select that may send to four sends each item to one.
void doubleselect() {
    constexpr int count = 400;
    std::array<channel, 4> to;
    channel all;
    weft::nursery fibers;
    for (channel& c : to)
        fibers.spawn([&] {
            for (int n : c) all.send(n).value();
            all.send(-1).value();
        });
    fibers.spawn([&] {
        for (int n = 0; n < count; ++n)
            weft::select(weft::on_send(to[0], n), weft::on_send(to[1], n), weft::on_send(to[2], n),
                         weft::on_send(to[3], n));
        for (channel& c : to) c.close();
    });
    std::vector<int> got;
    for (int ended = 0; ended < 4;) {
        const int n = *all.recv();
        if (n < 0)
            ++ended;
        else
            got.push_back(n);
    }
    std::sort(got.begin(), got.end());
    int sum = 0, twice = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        sum += got[i];
        if (i > 0 && got[i - 1] == got[i]) ++twice;
    }
    std::printf("doubleselect %zu %d %d\n", got.size(), sum, twice);
    fibers.join();
}

struct node {
    std::unique_ptr<node> left, right;
    int key;
};

std::unique_ptr<node> grown(int from, int to, int turn) {
    if (from == to) return nullptr;
    const int at = from + turn * 7919 % (to - from);
    return std::make_unique<node>(node{grown(from, at, turn + 1), grown(at + 1, to, turn + 2), at});
}

// False if the receiver does not want the rest.
bool walk(const node* n, channel& to) {
    return n == nullptr || (walk(n->left.get(), to) && to.send(n->key) && walk(n->right.get(), to));
}

// Two trees of different forms, walked at once, have the same keys in the same order until one that
// is missing at the end.
void same_fringe() {
    const std::unique_ptr<node> trees[] = {grown(0, 60, 1), grown(0, 59, 5)};
    channel a, b;
    weft::nursery fibers;
    auto walks = [&](const node* root, channel& c) {
        fibers.spawn([&c, root] { walk(root, c) && c.close(); });
    };
    walks(trees[0].get(), a);
    walks(trees[1].get(), b);
    for (int same = 0;;) {
        const auto x = a.recv(), y = b.recv();
        if (!x || !y) {
            std::printf("fringe %d %s %s %d\n", same, name_of(bool(x)), name_of(bool(y)),
                        x.value_or(0));
            return;
        }
        if (*x == *y) ++same;
    }
}

}  // namespace

int main() {
    return weft::run([] {
        sieve();
        fifo(0);
        fifo(3);
        fifo(10);
        nonblock();
        select_one();
        drains();
        doubleselect();
        same_fringe();
        return 0;
    });
}
