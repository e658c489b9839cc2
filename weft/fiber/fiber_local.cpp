#include "weft/fiber/fiber_local.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "weft/base/detail/line.hpp"

namespace weft::detail {

struct fiber_locals {
    struct entry {
        std::uint64_t key;
        void* object;
        void (*destroy)(void*) noexcept;
    };
    std::vector<entry> by_key;
    std::vector<std::uint64_t> in_order;  // the keys as they were made

    auto place(std::uint64_t key) noexcept {
        return std::ranges::lower_bound(by_key, key, {}, &entry::key);
    }
    void add(const entry& e) {
        if (in_order.size() == in_order.capacity()) in_order.reserve(8 + 2 * in_order.size());
        by_key.insert(place(e.key), e);
        in_order.push_back(e.key);  // there is room
    }
    // A destructor may use the objects that are left, and make new ones: these are destroyed in the
    // next round. There are as many rounds as POSIX has for a thread's keys.
    void destroy_all(agent_info who) noexcept {
        constexpr int rounds = 4;
        for (int round = 0; round < rounds && !in_order.empty(); ++round)
            for (std::vector<std::uint64_t> these = std::move(in_order); !these.empty();
                 these.pop_back()) {
                const auto last = place(these.back());
                const entry e = *last;
                by_key.erase(last);
                e.destroy(e.object);
            }
        if (in_order.empty()) return;
        line l;
        l.text("weft: destructors of fiber_locals make others anew without end: ")
            .number(in_order.size())
            .text(" are left");
        if (who.kind != nullptr) l.text(" by ").agent(who);
        l.newline().write(2);
    }
};

namespace {

// The locals of a plain thread. Nothing destroys these two words: code that runs after the thread's
// locals were destroyed, such as the destructors of statics, finds null and makes new ones.
struct locals_of_thread {
    fiber_locals* all = nullptr;
    std::size_t ends = 0;  // how many times they have been destroyed
};
constinit thread_local locals_of_thread of_this_thread;

WEFT_NOINLINE locals_of_thread& this_thread_locals() noexcept { return of_this_thread; }

struct end_of_thread {
    ~end_of_thread() {
        locals_of_thread& here = this_thread_locals();
        ++here.ends;
        if (here.all == nullptr) return;
        here.all->destroy_all({});
        delete std::exchange(here.all, nullptr);
    }
};
// A thread_local is destroyed once. Locals made after that are destroyed by the next one, while
// there is one; locals made by the destructor of a static stay.
template <int Time>
void end_with_thread() {
    thread_local const end_of_thread end;
    static_cast<void>(end);
}
constexpr void (*end_with_thread_again[])() = {end_with_thread<0>, end_with_thread<1>,
                                               end_with_thread<2>, end_with_thread<3>};

fiber_locals*& locals_here() noexcept {
    fiber_core* c = fiber_core::current();
    return c != nullptr ? c->locals : this_thread_locals().all;
}

}  // namespace

std::uint64_t new_fiber_local_key() noexcept {
    static constinit atomic<std::uint64_t> count{0};
    return count.fetch_add(1, std::memory_order_relaxed);  // only has to be unique
}

void* find_local(std::uint64_t key) noexcept {
    fiber_locals* const all = locals_here();
    if (all == nullptr) return nullptr;
    const auto at = all->place(key);
    return at != all->by_key.end() && at->key == key ? at->object : nullptr;
}

void add_local(std::uint64_t key, void* object, void (*destroy)(void*) noexcept) {
    fiber_locals*& all = locals_here();
    if (all == nullptr) {
        all = new fiber_locals;
        const std::size_t ends = this_thread_locals().ends;
        if (fiber_core::current() == nullptr && ends < std::size(end_with_thread_again))
            end_with_thread_again[ends]();
    }
    all->add({key, object, destroy});
}

bool try_add_local(std::uint64_t key, void* object, void (*destroy)(void*) noexcept) noexcept {
#if WEFT_EXCEPTIONS
    try {
        add_local(key, object, destroy);
    } catch (const std::bad_alloc&) {
        return false;
    }
#else
    add_local(key, object, destroy);
#endif
    return true;
}

void destroy_locals(fiber_core& c) noexcept {
    if (c.locals == nullptr) return;
    c.locals->destroy_all(c.info());
    delete std::exchange(c.locals, nullptr);
}

}  // namespace weft::detail
