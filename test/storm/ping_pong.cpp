// storm ping_pong: a coroutine that continues on whichever thread wins it.
//
// A round has one coroutine and two or three threads, each of which tries to resume it, over and
// over; the body yields at random depths, with a block of memory and now and then an exception in
// flight, and is killed on one of the threads at the end. Laws: one of the resumers wins; the body
// finds what it has left, its context and its exception; no increment of its non-atomic counters is
// lost, which ThreadSanitizer reports as a race before it shows. The unit is a resume.
#include <atomic>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/storm/storm.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace {

using weft::coroutine;
using weft::testing::storm::random;

constexpr unsigned resumes_a_round = 20'000;

// What the body writes and its resumers read, none of it atomic.
struct account {
    unsigned yields = 0;
    unsigned alive = 0;
};

struct guest {
    explicit guest(account& a) : of(a) { ++of.alive; }
    guest(const guest&) = delete;
    guest& operator=(const guest&) = delete;
    ~guest() { --of.alive; }
    account& of;
};

void yield_at(account& a, unsigned depth) {
    const guest here(a);
    const auto block = std::make_unique<unsigned>(depth);
    if (depth != 0) return yield_at(a, depth - 1);
    const std::uint64_t id = weft::this_coroutine::id();
    const unsigned before = ++a.yields;
    weft::this_coroutine::yield();
    STORM_CHECK(a.yields == before && *block == depth && weft::this_coroutine::id() == id);
}

void body(account& a, random r) {
    for (;;) {
        const auto depth = static_cast<unsigned>(r.below(4));
        if (!r.one_in(16)) {
            yield_at(a, depth);
            continue;
        }
        try {
            throw std::runtime_error(std::to_string(a.yields));
        } catch (const std::runtime_error& e) {
            yield_at(a, depth);
            STORM_CHECK(e.what() == std::to_string(a.yields - 1));
        }
    }
}

std::uint64_t one_round(random& r) {
    account a;
    coroutine<> c([&a, own = random(r.next())] { body(a, own); });
    std::atomic<unsigned> resumed{0};
    std::atomic<bool> killed{false};
    const auto agent = [&] {
        while (resumed.load(std::memory_order_relaxed) < resumes_a_round) {
            if (c.try_resume())
                resumed.fetch_add(1, std::memory_order_release);  // pairs with the killer's acquire
            else
                std::this_thread::yield();
        }
    };
    std::vector<std::thread> threads;
    for (auto n = 1 + r.below(2); n != 0; --n) threads.emplace_back(agent);
    agent();
    for (std::thread& t : threads) t.join();
    STORM_CHECK(a.yields == resumed.load(std::memory_order_acquire));
    std::thread([&] { killed = c.kill(); }).join();
    STORM_CHECK(killed && a.alive == 0);
    return a.yields;
}

}  // namespace

int main(int argc, char** argv) {
    return weft::testing::storm::run(argc, argv, "ping_pong", one_round);
}
