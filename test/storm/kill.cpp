// storm kill: random bodies, killed wherever they happen to be suspended.
//
// A round grows coroutines with bodies that nest calls, objects, handlers that catch, swallow or
// rethrow, and children of their own; with destructors that resume and kill others; and with yields
// at any depth, also within a handler. Meanwhile they are resumed, killed and destroyed, on this
// thread and on another. Laws: of each coroutine every object is destroyed once, the youngest
// first, and none is left when it is done; an exception that is being handled is there after a
// yield; and the killing code has no exception in flight afterwards. The unit is a kill.
#include <deque>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "test/storm/storm.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace {

using weft::coroutine;
using weft::testing::storm::random;

constexpr unsigned most_depth = 6;

// Of one coroutine.
struct ledger {
    std::vector<unsigned> live;  // the numbers of its objects, the oldest first
    // It may have swallowed its kill, and what it throws would leave a destructor.
    bool has_swallowed = false;
};

struct forest {
    random& r;
    unsigned budget;  // of what bodies do, so that all of them end
    unsigned made = 0;
    std::uint64_t kills = 0;
    std::deque<ledger> ledgers{};                        // where they stay
    std::vector<std::unique_ptr<coroutine<>>> others{};  // what destructors resume and kill
};

void grow(forest& f);
void disturb(forest& f);

// What every frame has: destroyed once, in order. Some of them look after other coroutines.
class object {
public:
    object(forest& f, ledger& l) : forest_(f), ledger_(l), number_(++f.made) {
        l.live.push_back(number_);
    }
    object(const object&) = delete;
    object& operator=(const object&) = delete;
    ~object() {
        STORM_CHECK(!ledger_.live.empty() && ledger_.live.back() == number_);
        ledger_.live.pop_back();
        if (forest_.budget != 0 && number_ % 8 == 0) disturb(forest_);
    }

private:
    forest& forest_;
    ledger& ledger_;
    unsigned number_;
};

void resume(coroutine<>& c) {
    try {
        c.resume();
    } catch (const std::runtime_error&) {
    }
}

void kill(forest& f, coroutine<>& c) {
    f.kills += c.kill();
    STORM_CHECK(c.done());
}

// On one of those that can be resumed now; in whatever context, also while another is killed.
void disturb(forest& f) {
    --f.budget;
    if (f.others.empty()) return;
    coroutine<>& c = *f.others[f.r.below(f.others.size())];
    if (!c) return;
    if (f.r.one_in(3))
        kill(f, c);
    else
        resume(c);
}

void yield_in_a_handler() {
    const std::exception_ptr handled = std::current_exception();
    weft::this_coroutine::yield();
    STORM_CHECK(std::current_exception() == handled);
}

void walk(forest& f, ledger& l, unsigned depth);

void with_a_child(forest& f, unsigned depth) {
    ledger& of_child = f.ledgers.emplace_back();
    {
        coroutine<> child([&f, &of_child, depth] { walk(f, of_child, depth + 1); });
        for (std::uint64_t n = f.r.below(4); n != 0 && child; --n) resume(child);
        if (f.r.one_in(2)) weft::this_coroutine::yield();
        f.kills += static_cast<bool>(child);  // by its destructor, here or when this is killed
    }
    STORM_CHECK(of_child.live.empty());
}

void walk(forest& f, ledger& l, unsigned depth) {
    const object first(f, l);
    for (std::uint64_t n = f.r.below(5); n != 0; --n) {
        if (f.budget == 0 || depth > most_depth) return;
        --f.budget;
        const object each(f, l);
        switch (f.r.below(9)) {
            case 0:
            case 1:
                weft::this_coroutine::yield();
                break;
            case 2:
            case 3:
                walk(f, l, depth + 1);
                break;
            case 4:
                try {
                    walk(f, l, depth + 1);
                } catch (const std::runtime_error&) {
                    const object in_handler(f, l);
                    yield_in_a_handler();
                }
                break;
            case 5:
                try {
                    walk(f, l, depth + 1);
                } catch (...) {
                    const object in_handler(f, l);
                    // No yield: where it is the kill that was caught, that is a misuse.
                    if (f.r.one_in(2)) throw;
                    l.has_swallowed = true;
                }
                break;
            case 6:
                if (!l.has_swallowed && f.r.one_in(2)) throw std::runtime_error("by design");
                break;
            case 7:
                with_a_child(f, depth);
                break;
            default:
                if (f.others.size() < 16) grow(f);
        }
    }
}

void grow(forest& f) {
    ledger& l = f.ledgers.emplace_back();
    f.others.push_back(std::make_unique<coroutine<>>([&f, &l] { walk(f, l, 0); }));
}

std::uint64_t one_round(random& r) {
    forest f{.r = r, .budget = 400};
    for (int n = 0; n < 4; ++n) grow(f);
    const auto some = [&f] {
        for (int n = 0; n < 12 && f.budget != 0; ++n) {
            --f.budget;
            disturb(f);
            STORM_CHECK(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr);
        }
    };
    for (int turn = 0; turn < 3; ++turn) some();
    if (r.one_in(8)) std::thread(some).join();
    f.budget = 0;
    const auto end = [&f] {
        for (const auto& c : f.others)
            if (*c) kill(f, *c);
    };
    if (r.one_in(8))
        std::thread(end).join();
    else
        end();
    f.others.clear();
    for (const ledger& l : f.ledgers) STORM_CHECK(l.live.empty());
    STORM_CHECK(std::uncaught_exceptions() == 0 && std::current_exception() == nullptr);
    return f.kills;
}

}  // namespace

int main(int argc, char** argv) { return weft::testing::storm::run(argc, argv, "kill", one_round); }
