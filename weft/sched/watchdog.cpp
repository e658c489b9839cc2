#include "weft/sched/watchdog.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/base/atomic.hpp"
#include "weft/base/line.hpp"

namespace weft {

// What a loop writes down of its turns, and the watching thread reads.
//
// Invariants:
// D1  serial_ is odd while a turn lasts, and even between two and while the loop sleeps
// D2  who it is was written before serial_ became odd, and is not touched until it is even
class watchdog::post final : public turn_watch {
public:
    explicit post(loop& l) noexcept : loop_(l) { l.set_watch(this); }
    ~post() { loop_.set_watch(nullptr); }

    void begins(const flow* f) noexcept override {
        long_turn t;
        if (f != nullptr) {
            const party who = f->who();
            t.kind = who.kind;
            t.id = who.id;
            if (who.name != nullptr) std::strncpy(t.name, who.name, sizeof t.name - 1);
        }
        std::uint64_t words[name_words];
        std::memcpy(words, t.name, sizeof words);
        // Release, all: who sees one of them sees that serial_ is even (D2); pairs with look().
        kind_.store(t.kind, std::memory_order_release);
        id_.store(t.id, std::memory_order_release);
        for (std::size_t i = 0; i != name_words; ++i)
            name_[i].store(words[i], std::memory_order_release);
        raise();
    }
    void ended() noexcept override { raise(); }

    // What lasts since the last look; false: nothing, or it is known.
    bool look(time_point now, duration limit, long_turn& t) noexcept {
        const std::uint64_t s = serial_.load(std::memory_order_acquire);  // pairs with raise()
        if (s != seen_) {
            seen_ = s;
            since_ = now;
            told_ = false;
            return false;
        }
        if (s % 2 == 0 || told_ || now - since_ < limit) return false;
        // Acquire, all: what follows comes after them; pairs with begins().
        t.kind = kind_.load(std::memory_order_acquire);
        t.id = id_.load(std::memory_order_acquire);
        std::uint64_t words[name_words];
        for (std::size_t i = 0; i != name_words; ++i)
            words[i] = name_[i].load(std::memory_order_acquire);
        std::memcpy(t.name, words, sizeof words);
        t.lasted = now - since_;
        // Another turn may have begun meanwhile, and have written over it.
        if (serial_.load(std::memory_order_relaxed) != s) return false;
        told_ = true;
        return true;
    }
    bool is_idle() const noexcept { return seen_ % 2 == 0; }

private:
    static constexpr std::size_t name_words = sizeof(long_turn::name) / 8;

    // Release: pairs with look().
    void raise() noexcept {
        const std::uint64_t s = serial_.load(std::memory_order_relaxed) + 1;  // its own
        serial_.store(s, std::memory_order_release);
    }

    loop& loop_;
    atomic<std::uint64_t> serial_{0};
    atomic<const char*> kind_{nullptr};
    atomic<std::uint64_t> id_{0};
    atomic<std::uint64_t> name_[name_words] = {};
    // The watching thread's.
    std::uint64_t seen_ = 0;
    time_point since_{};
    bool told_ = false;
};

watchdog::watchdog(const std::vector<loop*>& loops, duration limit, handler h)
    : limit_(std::max(limit, duration(std::chrono::milliseconds(1)))), handler_(h) {
    for (loop* l : loops) posts_.push_back(std::make_unique<post>(*l));
    thread_ = std::thread([this] { look_now_and_then(); });
}

watchdog::~watchdog() {
    {
        const std::lock_guard held(lock_);
        over_ = true;
    }
    over_changed_.notify_one();
    thread_.join();
}

void watchdog::look_now_and_then() noexcept {
    constexpr duration longest = std::chrono::seconds(1);
    const duration shortest = limit_ / 2;
    duration pause = shortest;
    std::unique_lock held(lock_);
    while (!over_) {
        const time_point now = steady_now();
        bool all_idle = true;
        for (const auto& p : posts_) {
            long_turn t;
            if (p->look(now, limit_, t)) handler_(t);
            all_idle = all_idle && p->is_idle();
        }
        pause = all_idle ? std::min(pause * 2, std::max(longest, shortest)) : shortest;
        over_changed_.wait_until(held, after(now, pause));
    }
}

void watchdog::print(const long_turn& t) {
    detail::line text;
    text.text("weft: ");
    if (t.kind == nullptr)
        text.text("a function");
    else
        text.who({t.kind, t.id, t.name});
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(t.lasted).count();
    text.text(" has held its thread for ").number(static_cast<std::uint64_t>(ms));
    text.text(" ms; nothing else runs there\n").write(2);
}

}  // namespace weft
