#include "weft/stack/detail/thread_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "weft/stack/default_stacks.hpp"
#include "weft/stack/malloc_stack.hpp"
#include "weft/stack/stack_pool.hpp"

namespace weft::detail {
namespace {

using heap_pool = stack_pool<malloc_stack>;

std::size_t caches_here() {
    std::size_t n = 0;
    for (const thread_cache* c : this_thread_stacks().entries) n += c != nullptr;
    return n;
}

void use_once(heap_pool& pool) { pool.release(pool.acquire()); }

TEST(thread_cache, exists_once_per_pool_and_thread) {
    std::thread([] {
        EXPECT_EQ(caches_here(), 0u);
        {
            heap_pool a(4096);
            heap_pool b(4096);
            EXPECT_EQ(caches_here(), 0u);
            use_once(a);
            use_once(a);
            EXPECT_EQ(caches_here(), 1u);
            use_once(b);
            EXPECT_EQ(caches_here(), 2u);
        }
        EXPECT_EQ(caches_here(), 0u) << "a pool takes its caches along";
    }).join();
}

TEST(thread_cache, reuses_pool_indices) {
    std::thread([] {
        for (int i = 0; i < 1000; ++i) {
            heap_pool pool(4096);
            use_once(pool);
            EXPECT_EQ(caches_here(), 1u);
        }
    }).join();
}

TEST(thread_cache, is_absent_for_pools_beyond_the_table) {
    std::thread([] {
        std::vector<std::unique_ptr<heap_pool>> pools;
        for (int i = 0; i < 100; ++i) {
            pools.push_back(std::make_unique<heap_pool>(4096));
            const stack s = pools.back()->acquire();
            pools.back()->release(s);
            EXPECT_EQ(pools.back()->acquire(), s);
            pools.back()->release(s);
            EXPECT_EQ(pools.back()->stats().free_count, 1u);
        }
        EXPECT_LE(caches_here(), thread_table::pool_count - 1);
        EXPECT_GE(caches_here(), thread_table::pool_count - 3 - size_class_count)
            << "other tests keep a few pools, and use those of the process";
        EXPECT_EQ(this_thread_stacks().entries[0], nullptr);
        EXPECT_EQ(this_thread_stacks().entries[thread_table::pool_count], nullptr);
        pools.clear();
        EXPECT_EQ(caches_here(), 0u);
    }).join();
}

// Uses the pool after this thread's table is destroyed: it was made before the table, and is
// destroyed after it.
struct late_user {
    heap_pool* pool = nullptr;
    stack kept;
    ~late_user() {
        if (pool == nullptr) return;
        pool->release(kept);
        use_once(*pool);
    }
};
thread_local late_user last;

TEST(thread_cache, is_bypassed_at_thread_exit) {
    heap_pool pool(4096);
    std::thread([&] {
        last.pool = &pool;
        last.kept = pool.acquire();
    }).join();
    EXPECT_EQ(pool.stats().used_count, 0u);
    EXPECT_EQ(pool.stats().free_count, 1u);
    EXPECT_EQ(pool.trim(), 1u);
}

// An allocator of the user's, over another pool.
struct borrower {
    heap_pool* from;
    stack acquire() noexcept { return from->acquire(); }
    void release(stack s) noexcept { from->release(s); }
    std::size_t stack_bytes() const noexcept { return from->stack_bytes(); }
};

TEST(thread_cache, idle_release_works_for_a_pool_over_another_pool) {
    heap_pool inner(4096);
    stack_pool<borrower> outer{borrower{&inner}};
    std::thread([&] {
        std::vector<stack> out;
        for (int n = 0; n != 80; ++n) out.push_back(outer.acquire());
        for (const stack s : out) outer.release(s);
    }).join();
    EXPECT_EQ(outer.stats().free_count, 80u);
    std::thread([&] {  // has no cache of the inner one yet
        time_point now = steady_now();
        for (int n = 0; n != 10; ++n) {
            static_cast<void>(cache_registry::release_unused(now));
            now += 2 * unused_period;
        }
    })
        .join();
    EXPECT_LT(outer.stats().free_count, 80u);
}

// The pool is no longer used by the thread that caches one of its stacks: ThreadSanitizer checks.
TEST(thread_cache, idle_release_is_safe_while_pools_are_destroyed) {
    std::atomic<heap_pool*> given{nullptr};
    std::atomic<int> used{0};
    std::atomic<bool> over{false};
    std::thread idle([&] {
        time_point now = steady_now();
        while (!over) {
            if (heap_pool* p = given.exchange(nullptr)) {
                p->release(p->acquire());
                ++used;
            }
            static_cast<void>(cache_registry::release_unused(now += unused_period));
        }
    });
    for (int n = 1; n <= 300; ++n) {
        auto p = std::make_unique<heap_pool>(4096);
        given = p.get();
        while (used != n) std::this_thread::yield();
    }
    over = true;
    idle.join();
    EXPECT_EQ(used, 300);
}

}  // namespace
}  // namespace weft::detail
