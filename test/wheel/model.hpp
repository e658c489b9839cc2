// A wheel in a few obvious lines, and a random walk that compares a real one with it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "weft/base/platform.hpp"
#include "weft/wheel/wheel.hpp"

namespace weft::test {

struct timer : wheel_node {
    int id = 0;
};

// Keyed by the tick a node counts for; equal keys stay in the order of adding.
class model {
public:
    explicit model(tick begin) : now(begin) {}

    void add(int id, tick deadline) {
        if (deadline == tick_never)
            never.push_back(id);
        else
            all.emplace(std::max(deadline, now), id);
    }

    bool remove(int id) {
        const auto n =
            std::find_if(all.begin(), all.end(), [&](auto& e) { return e.second == id; });
        if (n != all.end()) return all.erase(n), true;
        return std::erase(never, id) + std::erase(expired, id) != 0;
    }

    void advance(tick to) {
        now = std::max(now, to);
        for (; !all.empty() && all.begin()->first <= now; all.erase(all.begin()))
            expired.push_back(all.begin()->second);
    }

    tick earliest() const { return all.empty() ? tick_never : all.begin()->first; }
    std::size_t size() const { return all.size() + never.size() + expired.size(); }

    tick now;
    std::multimap<tick, int> all;
    std::vector<int> never;
    std::deque<int> expired;
};

// The same walk again: WEFT_TEST_SEED=<the number that was printed>.
inline std::uint64_t seed() {
    const char* given = std::getenv("WEFT_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

inline constexpr int walk_steps = WEFT_ASAN || WEFT_TSAN ? 100'000
                                  : WEFT_DEBUG           ? 300'000
                                                         : 3'000'000;

class walk {
public:
    // Delays and jumps have up to `bits` bits.
    walk(std::uint64_t seed, unsigned bits)
        : random_(seed), bits_(bits), wheel_(far(40)), model_(wheel_.now()) {
        for (int i = 0; i < 200; ++i) timers_[static_cast<std::size_t>(i)].id = i;
    }

    void run(int steps) {
        for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
            switch (random_() % 8) {
                case 0:
                    advance();
                    break;
                case 1:
                case 2:
                    remove();
                    break;
                default:
                    add();
                    break;
            }
            compare();
            if (step % 1'000 == 0) wheel_.check();
        }
        for (timer& t : timers_) EXPECT_EQ(wheel_.remove(t), model_.remove(t.id));
        EXPECT_TRUE(wheel_.empty());
        EXPECT_GT(expired_count_, steps / 50) << "a walk that shows nothing";
    }

private:
    timer& any() { return timers_[static_cast<std::size_t>(random_() % timers_.size())]; }

    // As many of one bit length as of any other.
    tick far(unsigned bits) {
        const unsigned n = static_cast<unsigned>(random_() % (bits + 1));
        return n == 0 ? 0 : random_() >> (64 - n);
    }

    tick some_deadline() {
        switch (random_() % 16) {
            case 0:
                return tick_never;
            case 1:
                return model_.now - std::min(model_.now, far(bits_));  // past
            case 2:
                return model_.now;
            case 3:
                return model_.all.empty() ? model_.now + 1 : model_.all.rbegin()->first;
            default:
                return tick_after(model_.now, far(bits_));
        }
    }

    void add() {
        timer& t = any();
        if (t.is_linked()) return;
        const tick deadline = some_deadline();
        wheel_.add(t, deadline);
        ASSERT_TRUE(t.is_linked()) << deadline;
        model_.add(t.id, deadline);
    }

    void remove() {
        timer& t = any();
        ASSERT_EQ(wheel_.remove(t), model_.remove(t.id));
        ASSERT_FALSE(t.is_linked());
    }

    void advance() {
        tick to = 0;
        switch (random_() % 8) {
            case 0:
                to = model_.now - std::min(model_.now, far(20));
                break;  // back: no move
            case 1:
                to = tick_after(model_.now, far(bits_));
                break;
            case 2:
                to = model_.now + 1;
                break;
            case 3:
                to = model_.earliest() - 1;
                break;  // just too early
            default:
                to = wheel_.next();
                break;
        }
        // Before the end of time, where a walk could not continue.
        to = std::min(to, tick_after(model_.now, tick{1} << bits_));
        model_.advance(to);
        const std::size_t count = wheel_.advance(to, [&](wheel_node& n) {
            auto& t = static_cast<timer&>(n);
            ASSERT_FALSE(model_.expired.empty());
            ASSERT_EQ(t.id, model_.expired.front());
            ASSERT_FALSE(t.is_linked());
            ASSERT_LE(t.deadline(), model_.now);
            model_.expired.pop_front();
            ++expired_count_;
            compare();
            if (random_() % 4 == 0) add();
            if (random_() % 4 == 0) remove();
        });
        ASSERT_TRUE(model_.expired.empty());
        ASSERT_LE(count, 200u);
    }

    void compare() {
        ASSERT_EQ(wheel_.now(), model_.now);
        ASSERT_EQ(wheel_.size(), model_.size());
        ASSERT_EQ(wheel_.empty(), model_.size() == 0);
        const tick next = wheel_.next();
        ASSERT_GE(next, wheel_.now());
        if (!model_.expired.empty()) {
            ASSERT_EQ(next, wheel_.now());
        } else if (model_.earliest() <= wheel_.now()) {
            ASSERT_EQ(next, model_.earliest());
        } else {
            ASSERT_LE(next, model_.earliest());
            ASSERT_GT(next, wheel_.now());
            ASSERT_EQ(next == tick_never, model_.earliest() == tick_never);
        }
    }

    std::mt19937_64 random_;
    const unsigned bits_;
    std::vector<timer> timers_ = std::vector<timer>(200);  // before the wheel
    wheel wheel_;
    model model_;
    int expired_count_ = 0;
};

}  // namespace weft::test
