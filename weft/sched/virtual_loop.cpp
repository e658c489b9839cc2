#include "weft/sched/virtual_loop.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "weft/base/assert.hpp"

namespace weft::testing {
namespace {

// splitmix64, by Sebastiano Vigna (public domain): each step a number that looks random.
std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;

// Of the loop that reports a deadlock.
thread_local std::uint64_t seed_here = 0;

}  // namespace

class virtual_loop::jumping_clock final : public driver {
public:
    bool wait(time_point until) noexcept override {
        if (std::exchange(woken_, false)) return true;
        if (until == never) return false;
        if (until > now_) now_ = until;
        return true;
    }
    void wake() noexcept override { woken_ = true; }
    time_point now() const noexcept override { return now_; }
    int native_handle() noexcept override { return -1; }

private:
    time_point now_{};
    bool woken_ = false;
};

class virtual_loop::lot final : public turn_chooser {
public:
    explicit lot(std::uint64_t seed) noexcept : state_(seed) {}

    std::size_t choose(std::size_t count) noexcept override {
        return static_cast<std::size_t>(mixed(state_ += golden) % count);
    }
    void ran(const flow* f) noexcept override {
        const auto when = static_cast<std::uint64_t>(loop->now().time_since_epoch().count());
        // Numbered by the loop: ids differ from one run to the next.
        hash = mixed(hash + golden + (f != nullptr ? f->serial : 0)) ^ mixed(when);
    }

    weft::loop* loop = nullptr;
    std::uint64_t hash = 0;

private:
    std::uint64_t state_;
};

virtual_loop::virtual_loop() : virtual_loop(seed_from_environment(1)) {}

virtual_loop::virtual_loop(std::uint64_t seed)
    : seed_(seed),
      lot_(std::make_unique<lot>(seed)),
      loop_(std::make_unique<weft::loop>(std::make_unique<jumping_clock>())) {
    lot_->loop = loop_.get();
    loop_->set_chooser(lot_.get());
    loop_->on_deadlock([](weft::loop& l) {
        std::fprintf(stderr, "weft: deadlock under WEFT_SEED=%llu; these wait:\n",
                     static_cast<unsigned long long>(seed_here));
        l.print_waiting(2);
        fail("deadlock in a virtual loop");
    });
}

virtual_loop::~virtual_loop() = default;

void virtual_loop::run() {
    seed_here = seed_;
    loop_->run();
}

std::uint64_t virtual_loop::trace_hash() const noexcept { return lot_->hash; }

std::uint64_t seed_from_environment(std::uint64_t otherwise) noexcept {
    const char* text = std::getenv("WEFT_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

bool explore(std::uint64_t count, const std::function<bool(std::uint64_t)>& run) {
    const bool one = std::getenv("WEFT_SEED") != nullptr;
    const std::uint64_t first = seed_from_environment(1);
    for (std::uint64_t seed = first; seed < first + (one ? 1 : count); ++seed) {
        bool well = false;
#if WEFT_EXCEPTIONS
        try {
            well = run(seed);
        } catch (...) {
        }
#else
        well = run(seed);
#endif
        if (well) continue;
        std::fprintf(stderr, "weft: fails under WEFT_SEED=%llu\n",
                     static_cast<unsigned long long>(seed));
        return false;
    }
    return true;
}

}  // namespace weft::testing
