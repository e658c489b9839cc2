#include "weft/sched/watchdog.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "weft/base/detail/line.hpp"
#include "weft/sched/detail/turn_record.hpp"

namespace weft {

// A loop's record of its turns (turn_record.hpp), and what the watching thread has seen of it.
class watchdog::post final : public turn_watch {
public:
    explicit post(loop& l) noexcept : loop_(l) { l.set_watch(this); }
    ~post() { loop_.set_watch(nullptr); }

    void begins(const flow* f) noexcept override {
        detail::turn_record::agent p;
        if (f != nullptr) {
            const agent_info who = f->info();
            p.kind = who.kind;
            p.id = who.id;
            if (who.name != nullptr) std::strncpy(p.name, who.name, sizeof p.name - 1);
        }
        turn_.begin(p);
    }
    void ended() noexcept override { turn_.end(); }

    // Whether a turn has lasted for `limit` since it was first seen, and is not reported yet; fills
    // t.
    bool look(time_point now, duration limit, stall_info& t) noexcept {
        const std::uint64_t s = turn_.serial();
        if (s != seen_) {
            seen_ = s;
            since_ = now;
            told_ = false;
            return false;
        }
        if (is_idle() || told_ || now - since_ < limit) return false;
        detail::turn_record::agent p;
        if (!turn_.read(s, p)) return false;
        t.kind = p.kind;
        t.id = p.id;
        t.lasted = now - since_;
        std::memcpy(t.name, p.name, sizeof t.name);
        return told_ = true;
    }
    bool is_idle() const noexcept { return !detail::turn_record::lasts(seen_); }

private:
    loop& loop_;
    detail::turn_record turn_;
    // Used by the watching thread only.
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
            stall_info t;
            if (p->look(now, limit_, t)) handler_(t);
            all_idle = all_idle && p->is_idle();
        }
        pause = all_idle ? std::min(pause * 2, std::max(longest, shortest)) : shortest;
        over_changed_.wait_until(held, after(now, pause));
    }
}

void watchdog::print(const stall_info& t) {
    detail::line text;
    text.text("weft: ");
    if (t.kind == nullptr)
        text.text("a function");
    else
        text.agent({t.kind, t.id, t.name});
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(t.lasted).count();
    text.text(" has held its thread for ").number(static_cast<std::uint64_t>(ms));
    text.text(" ms; nothing else runs there\n").write(2);
}

}  // namespace weft
