#include "weft/stack/thread_cache.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <thread>

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

constinit std::mutex registry_lock;  // guards the next two
constinit pool_core* pools[index_count] = {};
constinit unsigned visitors[index_count + 1] = {};  // of a pool, which does not go meanwhile
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
    std::unique_lock held(registry_lock);
    // A visit is some hundred microseconds' work.
    while (visitors[p.index_.load(std::memory_order_relaxed)] != 0) {
        held.unlock();
        std::this_thread::yield();
        held.lock();
    }
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

// What a thread keeps can only be seen under the registry's lock, as others may destroy the pools.
bool cache_registry::keeps_any(const thread_table& mine) noexcept {
    const std::lock_guard held(registry_lock);
    for (std::uint32_t i = 1; i <= mine.highest; ++i)
        if (mine.entries[i] != nullptr && mine.entries[i]->count() != 0) return true;
    return false;
}

// A pool is visited without the registry's lock: its allocator may take stacks from another pool.
time_point cache_registry::give_back(time_point now) noexcept {
    thread_table& mine = this_thread_stacks();
    if (!pool_core::any_is_listed() && (mine.highest == 0 || !keeps_any(mine))) return never;
    time_point next = never;
    for (std::uint32_t i = 1; i < index_count; ++i) {
        pool_core* p;
        {
            const std::lock_guard held(registry_lock);
            p = pools[i];
            if (p == nullptr) continue;
            ++visitors[i];
        }
        next = std::min(next, p->give_back(now));
        const std::lock_guard held(registry_lock);
        --visitors[i];
    }
    return next;
}

}  // namespace weft::detail
