// What the tests of the coroutine layer have in common: objects that are counted, stacks that are.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "weft/stack/mapped_stack.hpp"
#include "weft/stack/stack.hpp"

namespace coroutine_test {

// The objects that refer to it: how many are alive, and which were destroyed, in order.
struct tally {
    int alive = 0;
    std::string deaths;
};

// Named by a letter. A copy and a moved-from object are alive too, but the latter is destroyed
// unnamed, so that a letter is in `deaths` once for each time its value was destroyed.
class counted {
public:
    counted(tally& t, char name) : tally_(&t), name_(name) { ++t.alive; }
    counted(const counted& other) : counted(*other.tally_, other.name_) {}
    counted(counted&& other) noexcept
        : counted(*other.tally_, std::exchange(other.name_, moved_from)) {}
    counted& operator=(const counted&) = delete;
    ~counted() {
        --tally_->alive;
        if (name_ != moved_from) tally_->deaths += name_;
    }

private:
    static constexpr char moved_from = '\0';
    tally* tally_;
    char name_;
};

// Its destructor runs a function, which may do what a destructor should not.
template <class F>
struct at_exit {
    F f;
    explicit at_exit(F g) : f(std::move(g)) {}
    at_exit(const at_exit&) = delete;
    ~at_exit() noexcept(false) { f(); }
};

// A stack_allocator that counts, and refuses once its budget is used up.
struct counting_stacks {
    weft::mapped_stack stacks{64 * 1024};
    int acquired = 0;
    int released = 0;
    int refused = 0;
    int budget = 1'000'000;

    weft::stack acquire() noexcept {
        if (budget == 0) return ++refused, weft::stack{};
        --budget;
        ++acquired;
        return stacks.acquire();
    }
    void release(weft::stack s) noexcept {
        ++released;
        stacks.release(s);
    }
    std::size_t stack_bytes() const noexcept { return stacks.stack_bytes(); }
};

}  // namespace coroutine_test
