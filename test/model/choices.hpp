// choices: the choices made in one execution, and those to make in the next.
//
// Design: a list of (taken, alternatives), replayed from the front; past its end the first
// alternative is taken. To continue, the last choice that has another alternative takes it, and the
// choices after it are dropped: a depth-first walk of the tree that stores one path.
//
//   0/2  1/3  0/2  1/2     the next is   0/2  1/3  1/2
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace model::detail {

class choices {
public:
    // 0 .. count - 1; 0 is the one that deviates from nothing. `count` when the test, which came
    // here before with other alternatives, is not deterministic.
    std::size_t choose(std::size_t count) {
        if (count == 1) return 0;
        if (at_ == path_.size()) {
            const std::size_t pick = random_ ? throw_dice(count) : 0;
            path_.push_back({pick, count});
        }
        const choice c = path_[at_++];
        return c.count == count || (c.count == 0 && c.taken < count) ? c.taken : count;
    }

    // To the next path; false when there is none.
    bool advance() {
        at_ = 0;
        while (!path_.empty() && path_.back().taken + 1 == path_.back().count) path_.pop_back();
        if (path_.empty()) return false;
        ++path_.back().taken;
        return true;
    }

    void restart() {
        path_.clear();
        at_ = 0;
    }
    // From now on each new choice is random: three times in four the first.
    void randomise(std::uint64_t seed) {
        random_ = true;
        state_ = seed;
    }

    // "0.1.0.1", without zeros at the end; never empty.
    std::string text() const {
        std::size_t end = path_.size();
        while (end > 0 && path_[end - 1].taken == 0) --end;
        std::string all;
        for (std::size_t n = 0; n < end; ++n) {
            if (n > 0) all += '.';
            all += std::to_string(path_[n].taken);
        }
        return all.empty() ? "0" : all;
    }
    void parse(const std::string& text) {
        restart();
        for (std::size_t from = 0; from < text.size(); from = text.find('.', from) + 1) {
            path_.push_back({static_cast<std::size_t>(std::stoul(text.substr(from))), 0});
            if (text.find('.', from) == std::string::npos) break;
        }
    }

private:
    struct choice {
        std::size_t taken;
        std::size_t count;  // 0: read from a text, which does not say it
    };

    std::size_t throw_dice(std::size_t count) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        const std::uint64_t dice = state_ >> 33;
        return dice % 4 != 0 ? 0 : static_cast<std::size_t>(dice / 4 % count);
    }

    std::vector<choice> path_;
    std::size_t at_ = 0;
    bool random_ = false;
    std::uint64_t state_ = 0;
};

}  // namespace model::detail
