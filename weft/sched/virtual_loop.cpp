#include "weft/sched/virtual_loop.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "weft/base/assert.hpp"
#include "weft/base/detail/atomic.hpp"

namespace weft::testing {
namespace {

// splitmix64, by Sebastiano Vigna (public domain): a well mixed number for each step.
std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;

}  // namespace

class virtual_loop::jumping_clock final : public driver {
public:
    bool wait(time_point until) noexcept override {
        // Acquire: pairs with wake(), so that what was posted before it is seen.
        if (woken_.exchange(false, std::memory_order_acquire)) return true;
        if (until == never) return false;
        if (until > now()) now_.store(until, std::memory_order_relaxed);  // the only writer
        return true;
    }
    void wake() noexcept override { woken_.exchange(true, std::memory_order_release); }
    void clear_wake() noexcept override { woken_.exchange(false, std::memory_order_acquire); }
    // Relaxed: it orders no other data.
    time_point now() const noexcept override { return now_.load(std::memory_order_relaxed); }
    bool keeps_real_time() const noexcept override { return false; }
    int native_handle() noexcept override { return -1; }

private:
    atomic<time_point> now_{time_point{}};
    // Orders: what acquires pairs with wake(). All are exchanges, so that each wake before is seen.
    atomic<bool> woken_{false};
};

class virtual_loop::lot final : public schedule_policy {
public:
    explicit lot(std::uint64_t s) noexcept : seed(s), state_(s) {}

    std::size_t choose(std::size_t count) noexcept override {
        return static_cast<std::size_t>(mixed(state_ += golden) % count);
    }
    void ran(const flow* f) noexcept override {
        // The serial comes from the loop: ids differ from one run to the next.
        add(f != nullptr ? f->serial : 0, loop->now());
    }
    void fired(const timer_node& t) noexcept override { add(of_a_timer, t.deadline); }

    weft::loop* loop = nullptr;
    const std::uint64_t seed;
    std::uint64_t hash = 0;

private:
    static constexpr std::uint64_t of_a_timer = ~std::uint64_t{0};  // no flow's number

    void add(std::uint64_t who, time_point when) noexcept {
        const auto at = static_cast<std::uint64_t>(when.time_since_epoch().count());
        hash = mixed(hash + golden + who) ^ mixed(at);
    }

    std::uint64_t state_;
};

virtual_loop::virtual_loop() : virtual_loop(seed_from_environment(1)) {}

virtual_loop::virtual_loop(std::uint64_t seed)
    : lot_(std::make_unique<lot>(seed)),
      loop_(std::make_unique<weft::loop>(std::make_unique<jumping_clock>())) {
    lot_->loop = loop_.get();
    loop_->set_schedule_policy(lot_.get());
    loop_->on_deadlock([](weft::loop& l) {
        std::fprintf(stderr, "weft: deadlock under WEFT_SEED=%llu; these wait:\n",
                     static_cast<unsigned long long>(static_cast<lot*>(l.chooser())->seed));
        l.print_waiting(2);
        fail("deadlock in a virtual loop", {}, unknown_caller);
    });
}

virtual_loop::~virtual_loop() = default;

void virtual_loop::run() { loop_->run(); }

std::uint64_t virtual_loop::seed() const noexcept { return lot_->seed; }

std::uint64_t virtual_loop::trace_hash() const noexcept { return lot_->hash; }

std::uint64_t seed_from_environment(std::uint64_t otherwise) noexcept {
    const char* text = std::getenv("WEFT_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

bool explore(std::uint64_t count, bool (*run)(void*, std::uint64_t), void* of) {
    const bool one = std::getenv("WEFT_SEED") != nullptr;
    const std::uint64_t first = seed_from_environment(1);
    for (std::uint64_t seed = first; seed < first + (one ? 1 : count); ++seed) {
        bool well = false;
        std::string why;
#if WEFT_EXCEPTIONS
        try {
            well = run(of, seed);
        } catch (const std::exception& e) {
            why = std::string(": ") + e.what();
        } catch (...) {  // it has no message
        }
#else
        well = run(of, seed);
#endif
        if (well) continue;
        std::fprintf(stderr, "weft: fails under WEFT_SEED=%llu%s\n",
                     static_cast<unsigned long long>(seed), why.c_str());
        return false;
    }
    return true;
}

}  // namespace weft::testing
