#include "weft/stack/thread_cache.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "weft/base/give_back.hpp"
#include "weft/stack/os_memory.hpp"
#include "weft/stack/pool_core.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::thread_table, weft_tls_stack_caches);

namespace weft::detail {
namespace {

constexpr std::uint32_t index_count = thread_table::pool_count;

struct leave_at_exit {
    ~leave_at_exit() { cache_registry::leave(); }
    void arm() noexcept {}
};
thread_local leave_at_exit at_exit;

constinit std::mutex registry_lock;
constinit pool_core* pools[index_count] = {};
constinit memory_keeper keeper{cache_registry::give_back};

std::uint32_t assign_index(pool_core& p) noexcept {
    for (std::uint32_t i = 1; i < index_count; ++i) {
        if (pools[i] == nullptr) {
            pools[i] = &p;
            return i;
        }
    }
    return index_count;
}

}  // namespace

thread_cache* cache_registry::make(pool_core& p) noexcept {
    thread_table& mine = this_thread_stacks();
    if (mine.ended) return nullptr;
    const std::lock_guard held(registry_lock);
    std::uint32_t index = p.index_.load(std::memory_order_relaxed);
    if (index == 0) {
        index = assign_index(p);
        p.index_.store(index, std::memory_order_relaxed);
    }
    if (index == index_count) return nullptr;
    if (thread_cache* c = mine.entries[index]) return c;
    void* memory = os.allocate(sizeof(thread_cache));
    if (memory == nullptr) return nullptr;
    auto* c = new (memory) thread_cache;
    c->home = &mine.entries[index];
    *c->home = c;
    mine.highest = std::max(mine.highest, index);
    p.attach(*c);
    at_exit.arm();
    keeper.enter();
    return c;
}

void cache_registry::forget(pool_core& p) noexcept {
    const std::lock_guard held(registry_lock);
    while (thread_cache* c = p.caches_) {
        p.caches_ = c->next;
        *c->home = nullptr;
        os.free(c);
    }
    const std::uint32_t index = p.index_.load(std::memory_order_relaxed);
    if (index < index_count) pools[index] = nullptr;
}

void cache_registry::leave() noexcept {
    const std::lock_guard held(registry_lock);
    thread_table& mine = this_thread_stacks();
    mine.ended = true;
    for (thread_cache*& c : mine.entries) {
        if (c == nullptr) continue;
        c->pool->detach(*c);
        os.free(c);
        c = nullptr;
    }
}

// Another thread in here does the same, or makes a cache.
time_point cache_registry::give_back(time_point now) noexcept {
    if (!pool_core::any_is_listed() && !this_thread_stacks().has_free_stacks()) return never;
    const std::unique_lock held(registry_lock, std::try_to_lock);
    if (!held) return after(now, give_back_period);
    time_point next = never;
    for (pool_core* p : pools)
        if (p != nullptr) next = std::min(next, p->give_back(now));
    return next;
}

}  // namespace weft::detail
