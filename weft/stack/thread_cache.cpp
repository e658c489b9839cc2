#include "weft/stack/detail/thread_cache.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/release_unused.hpp"
#include "weft/base/detail/system_mutex.hpp"
#include "weft/stack/detail/os_memory.hpp"
#include "weft/stack/detail/pool_core.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::thread_table, weft_tls_stack_caches);

namespace weft::detail {
namespace {

constexpr std::uint32_t index_count = thread_table::pool_count;

struct leave_at_exit {
    ~leave_at_exit() { cache_registry::leave(); }
    void arm() noexcept {}
};
thread_local leave_at_exit at_exit;

constinit system_mutex registry_lock;  // guards the next two
constinit pool_core* pools[index_count] = {};
constinit unsigned visitors[index_count + 1] = {};  // of a pool, which stays meanwhile
constinit memory_keeper keeper{cache_registry::release_unused};

std::uint32_t assign_index(pool_core& p) noexcept {
    for (std::uint32_t i = 1; i < index_count; ++i) {
        if (pools[i] == nullptr) {
            pools[i] = &p;
            return i;
        }
    }
    return index_count;
}

// Keeps the pool of an index, if the index has one, from being destroyed. The registry's lock is
// not held meanwhile, since under a pool's lock the allocator of that pool may take stacks from
// another pool.
class visit {
public:
    explicit visit(std::uint32_t index) noexcept : index_(index) {
        const std::lock_guard held(registry_lock);
        pool_ = pools[index];
        if (pool_ != nullptr) ++visitors[index];
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() {
        if (pool_ == nullptr) return;
        const std::lock_guard held(registry_lock);
        --visitors[index_];
    }
    pool_core* pool() const noexcept { return pool_; }

private:
    const std::uint32_t index_;
    pool_core* pool_;
};

}  // namespace

thread_cache* cache_registry::make(pool_core& p) noexcept {
    thread_table& mine = this_thread_stacks();
    if (mine.ended) return nullptr;
    thread_cache* c;
    {
        const std::lock_guard held(registry_lock);
        std::uint32_t index = p.index_.load(std::memory_order_relaxed);  // under the lock
        if (index == 0) {
            index = assign_index(p);
            // Release: pairs with own_cache(), for an index that another pool had before.
            p.index_.store(index, std::memory_order_release);
        }
        if (index == index_count) return nullptr;
        c = mine.entries[index];
        if (c != nullptr) return c;
        void* memory = os.allocate(sizeof(thread_cache));
        if (memory == nullptr) return nullptr;
        c = new (memory) thread_cache;
        c->home = &mine.entries[index];
        *c->home = c;
        mine.highest = std::max(mine.highest, index);
    }
    p.attach(*c);
    at_exit.arm();
    keeper.enter();
    return c;
}

void cache_registry::deregister(pool_core& p) noexcept {
    std::unique_lock held(registry_lock);
    // A visit is some hundred microseconds' work.
    while (visitors[p.index_.load(std::memory_order_relaxed)] != 0) {  // under the lock
        held.unlock();
        spin_yield();
        held.lock();
    }
    while (thread_cache* c = p.caches_) {
        p.caches_ = c->next;
        *c->home = nullptr;
        os.free(c);
    }
    const std::uint32_t index = p.index_.load(std::memory_order_relaxed);  // under the lock
    if (index < index_count) pools[index] = nullptr;
}

void cache_registry::leave() noexcept {
    thread_table& mine = this_thread_stacks();
    mine.ended = true;
    for (std::uint32_t i = 1; i <= mine.highest; ++i) {
        const visit v(i);
        thread_cache*& c = mine.entries[i];
        if (v.pool() == nullptr || c == nullptr) continue;
        v.pool()->detach(*c);
        os.free(c);
        c = nullptr;
    }
}

// A thread's caches are read under the registry's lock only, as other threads may destroy the
// pools.
bool cache_registry::keeps_any(const thread_table& mine) noexcept {
    const std::lock_guard held(registry_lock);
    for (std::uint32_t i = 1; i <= mine.highest; ++i)
        if (mine.entries[i] != nullptr && mine.entries[i]->count() != 0) return true;
    return false;
}

time_point cache_registry::release_unused(time_point now) noexcept {
    thread_table& mine = this_thread_stacks();
    if (!pool_core::any_is_listed() && (mine.highest == 0 || !keeps_any(mine))) return never;
    time_point next = never;
    for (std::uint32_t i = 1; i < index_count; ++i)
        if (const visit v(i); v.pool() != nullptr)
            next = std::min(next, v.pool()->release_unused(now));
    return next;
}

}  // namespace weft::detail
