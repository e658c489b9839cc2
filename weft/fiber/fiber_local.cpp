#include "weft/fiber/fiber_local.hpp"

#include <algorithm>
#include <vector>

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
    // One destructor may use those that are left, and make others anew.
    void destroy_all() noexcept {
        while (!in_order.empty()) {
            const auto last = place(in_order.back());
            const entry e = *last;
            in_order.pop_back();
            by_key.erase(last);
            e.destroy(e.object);
        }
    }
};

namespace {

struct thread_locals : fiber_locals {
    ~thread_locals() { destroy_all(); }
};
thread_local thread_locals of_this_thread;

WEFT_NOINLINE fiber_locals& locals_of_thread() noexcept { return of_this_thread; }

}  // namespace

std::uint64_t new_fiber_local_key() noexcept {
    static constinit atomic<std::uint64_t> count{0};
    return count.fetch_add(1, std::memory_order_relaxed);  // only to be different
}

void* find_local(std::uint64_t key) noexcept {
    fiber_core* c = fiber_core::current();
    fiber_locals* all = c != nullptr ? c->locals : &locals_of_thread();
    if (all == nullptr) return nullptr;
    const auto at = all->place(key);
    return at != all->by_key.end() && at->key == key ? at->object : nullptr;
}

void add_local(std::uint64_t key, void* object, void (*destroy)(void*) noexcept) {
    fiber_core* c = fiber_core::current();
    if (c != nullptr && c->locals == nullptr) c->locals = new fiber_locals;
    fiber_locals& all = c != nullptr ? *c->locals : locals_of_thread();
    all.add({key, object, destroy});
}

void destroy_locals(fiber_core& c) noexcept {
    if (c.locals == nullptr) return;
    c.locals->destroy_all();
    delete c.locals;
    c.locals = nullptr;
}

}  // namespace weft::detail
