// The futex of sources compiled for the checker. Replaces weft/base/futex.cpp. A wake goes to the
// thread that has slept longest; a sleep with a deadline ends as those of model/thread_mutex.hpp
// do.
#include "weft/base/detail/futex.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "model/model.hpp"
#include "model/thread_mutex.hpp"

namespace {

struct sleeper {
    const void* word;
    bool woken = false;  // plain: it orders nothing, and is set within an operation
};

// Of this execution. An abandoned execution leaves its entries behind, on words that are not
// reused.
std::vector<sleeper*>& sleepers() {
    static std::vector<sleeper*> all;
    return all;
}

}  // namespace

// The kernel checks the word: the check reads the newest value, and the check and the sleep are one
// step.
bool weft::detail::futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected,
                              time_point until) noexcept {
    if (word.fetch_add(0, std::memory_order_relaxed) != expected) return true;
    sleeper me{&word};
    sleepers().push_back(&me);
    const auto is_late = [&] {
        return until != never && model::time_has_passed.load(std::memory_order_relaxed);
    };
    model::wait_until([&] { return me.woken || is_late(); });
    std::erase(sleepers(), &me);
    return me.woken;
}

// Of a system_mutex, which is held for a few instructions and in which nothing is interleaved.
bool weft::detail::futex_wait_at(void*, std::uint32_t, time_point) noexcept { std::abort(); }

int weft::detail::futex_wake(const void* word, int most) noexcept {
    static model::atomic<unsigned> turn{0};
    turn.fetch_add(1, std::memory_order_relaxed);  // an operation, as the call is
    int n = 0;
    for (sleeper* s : sleepers())
        if (s->word == word && !s->woken && n < most) s->woken = true, ++n;
    return n;
}
