// pool_core: stack_pool without the type of its allocator.
//
//      thread A             thread B              any thread, under lock_
//      +-----------+        +-----------+         +-----------------------------+
//      | cache     |        | cache     |   half  | list   first_ ....... last_ |  create
//      | newest <- |        | newest <- |  <--->  |        oldest      newest   | <----> allocator
//      +-----------+        +-----------+         +-----------------------------+  destroy
//
// Invariants:
//   I1  created - destroyed = in use + in caches + in list
//   I2  the list has room for every existing stack, so that a release cannot fail
//   I3  a stack of another size than the present one is in no cache and not in the list
//   I4  free stacks are poisoned, others are not (asan_stack.hpp)
//
// Free stacks that are not used are released without a trim: an idle loop requests it
// (release_unused.hpp). At the end of each period, half of the listed stacks that were not needed
// in the period may be released, a few per call. The calling thread first moves the unused stacks
// of its own cache to the list. A load that recurs within a period therefore finds all of its
// stacks, and an idle program keeps none.
//
// Model: none, what is not the owner's alone (thread_cache.hpp) is under one lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "weft/base/clock.hpp"
#include "weft/base/detail/release_unused.hpp"
#include "weft/base/detail/system_mutex.hpp"
#include "weft/stack/detail/thread_cache.hpp"
#include "weft/stack/stack.hpp"
#include "weft/stack/stack_allocator_ref.hpp"
#include "weft/stack/stack_pool_options.hpp"

namespace weft::detail {

// The functions of the allocator that a pool calls, under the pool's lock.
struct pool_verbs {
    stack (*acquire)(void*) noexcept;
    void (*release)(void*, std::span<const stack>) noexcept;
    std::size_t (*stack_bytes)(const void*) noexcept;
    std::size_t (*mapped_bytes)(const void*, std::size_t count) noexcept;
    bool (*has_canaries)(const void*) noexcept;
    void (*inspect)(const void*, stack) noexcept;
    bool resizable;  // stacks of several sizes may exist
};

template <class A>
concept resizable_allocator = requires(A& a, std::size_t n) { a.set_stack_bytes(n); };

// The verbs of an allocator: its own if the allocator has more operations than the concept requires
// (slab_stack), else verbs made from those that the concept requires.
template <class A>
inline constexpr pool_verbs pool_verbs_of = {
    [](void* a) noexcept { return static_cast<A*>(a)->acquire(); },
    [](void* a, std::span<const stack> stacks) noexcept {
        if constexpr (requires { static_cast<A*>(a)->release(stacks); })
            static_cast<A*>(a)->release(stacks);
        else
            for (const stack s : stacks) static_cast<A*>(a)->release(s);
    },
    [](const void* a) noexcept {
        return static_cast<std::size_t>(static_cast<const A*>(a)->stack_bytes());
    },
    [](const void* a, std::size_t count) noexcept {
        if constexpr (requires { static_cast<const A*>(a)->mapped_bytes(); })
            return static_cast<const A*>(a)->mapped_bytes();
        else
            return count * static_cast<const A*>(a)->stack_bytes();
    },
    [](const void* a) noexcept {
        if constexpr (requires { static_cast<const A*>(a)->has_canaries(); })
            return static_cast<const A*>(a)->has_canaries();
        else
            return false;
    },
    [](const void* a, stack s) noexcept {
        if constexpr (requires { static_cast<const A*>(a)->inspect(s); })
            static_cast<const A*>(a)->inspect(s);
    },
    resizable_allocator<A>,
};

class pool_core {
public:
    constexpr pool_core(void* allocator, const pool_verbs& verbs,
                        const stack_pool_options& limits) noexcept
        : allocator_(allocator), verbs_(&verbs), limits_(limits) {}
    ~pool_core();
    pool_core(const pool_core&) = delete;
    pool_core& operator=(const pool_core&) = delete;

    stack acquire() noexcept { return acquire_from(this); }
    void release(stack s) noexcept { release_to(this, s); }
    constexpr stack_allocator_ref source() noexcept { return {this, source_verbs}; }
    // The pool of a source; null if the source is of something else.
    static pool_core* of(stack_allocator_ref s) noexcept {
        return static_cast<pool_core*>(s.allocator_by(source_verbs));
    }
    // The calling thread's cache of this pool, or null; valid until the caller suspends.
    thread_cache* own_cache() const noexcept {
        // The end of the pool that had this index before has set the entry to null, on another
        // thread. Relaxed: the entry's address depends on the index, and every processor orders
        // such a load after that of the index; pairs with cache_registry::make(). ThreadSanitizer
        // knows no such order.
        constexpr auto depends = WEFT_TSAN ? std::memory_order_acquire : std::memory_order_relaxed;
        return this_thread_stacks().entries[index_.load(depends)];
    }

    std::size_t trim(std::size_t max_count) noexcept;
    // Releases a few of the unused stacks, and returns when to call again.
    time_point release_unused(time_point now) noexcept;
    static bool any_is_listed() noexcept;  // in any pool
    void clear() noexcept;
    // Releases every free stack, and calls `change` to alter the allocator's stack_bytes; an idle
    // thread that releases unused stacks meanwhile finds the old size or the new one.
    template <class F>
    void change_size(F change) noexcept {
        const std::lock_guard held(lock_);
        clear_locked();
        change();
        settle_all();
    }
    void set_limits(const stack_pool_options&) noexcept;
    stack_pool_options limits() const noexcept;
    stack_pool_stats stats() const noexcept;
    void check() const noexcept;

private:
    friend struct cache_registry;

    static stack acquire_from(void* core) noexcept;
    static void release_to(void* core, stack) noexcept;
    static std::size_t stack_bytes_of(const void* core) noexcept;
    static constexpr stack_allocator_ref::verbs source_verbs = {acquire_from, release_to,
                                                                stack_bytes_of};

    stack acquire_slowly(thread_cache*) noexcept;
    void release_slowly(thread_cache*, stack) noexcept;

    // Of the caches, called by the registry.
    void attach(thread_cache&) noexcept;  // its owner settles the cache before the first use
    void detach(thread_cache&) noexcept;  // the stacks in the cache go to the list

    // All of these under lock_.
    stack create() noexcept;
    void destroy(std::span<const stack>) noexcept;
    bool make_room() noexcept;
    void push(std::span<const stack>) noexcept;
    void destroy_oldest(std::size_t count) noexcept;
    void drop_unused_room() noexcept;
    void bring_unused(thread_cache&, time_point now) noexcept;
    void drain(thread_cache&, std::size_t count) noexcept;  // the oldest go to the list
    void clear_locked() noexcept;
    void settle(thread_cache&) noexcept;
    void settle_all() noexcept;
    void recall() noexcept;
    void note_peak() const noexcept;
    std::size_t alive_count() const noexcept { return created_count_ - destroyed_count_; }
    std::size_t list_count() const noexcept { return last_ - first_; }
    std::size_t cached_count() const noexcept;
    std::size_t minimum() const noexcept;
    std::size_t above_minimum() const noexcept;
    std::size_t maximum() const noexcept;
    std::size_t thread_count() const noexcept;
    bool fits(stack) const noexcept;

    void* const allocator_;
    const pool_verbs* const verbs_;
    // The index of this pool in each thread's table; 0 while the pool has none. Relaxed: a thread's
    // entry is filled in by that thread, so whatever index the thread reads here, its entry holds
    // the thread's own cache or none.
    std::atomic<std::uint32_t> index_{0};

    mutable system_mutex lock_;  // guards all below
    stack_pool_options limits_;
    stack* list_ = nullptr;
    std::size_t first_ = 0;
    std::size_t last_ = 0;
    std::size_t capacity_ = 0;
    std::size_t created_count_ = 0;
    std::size_t destroyed_count_ = 0;
    mutable std::size_t peak_used_count_ = 0;
    unused unused_;  // of the list
    thread_cache* caches_ = nullptr;
};

}  // namespace weft::detail
