#include "weft/stack/detail/pool_core.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>

#include "weft/base/assert.hpp"
#include "weft/stack/detail/asan_stack.hpp"
#include "weft/stack/detail/colour_offset.hpp"
#include "weft/stack/detail/os_memory.hpp"

namespace weft::detail {
namespace {

// Orders: see the declarations of `listed` and of what a thread_cache has.
constexpr auto relaxed = std::memory_order_relaxed;

// How many stacks one call releases at most, which is some hundred microseconds' work; and how many
// a period releases at least, so that the last of many do not take as long as all the others.
constexpr std::size_t most_at_a_call = 32;
constexpr std::size_t least_in_a_period = 256;

// The stacks in the lists of all pools, for an idle thread that checks often. Relaxed: a hint.
constinit std::atomic<std::size_t> listed{0};

}  // namespace

pool_core::~pool_core() {
    clear();
    WEFT_ASSERT_AT(alive_count() == 0, "destruction of a stack_pool whose stacks are in use",
                   unknown_caller);
    cache_registry::deregister(*this);
    os.free(list_);
}

// Out of line, both: they read thread-local state, and their callers migrate between threads.

WEFT_NOINLINE stack pool_core::acquire_from(void* core) noexcept {
    auto& self = *static_cast<pool_core*>(core);
    thread_cache* c = self.own_cache();
    if (c == nullptr) [[unlikely]]
        return self.acquire_slowly(nullptr);
    const stack s = c->take();
    return s ? s : self.acquire_slowly(c);
}

WEFT_NOINLINE void pool_core::release_to(void* core, stack s) noexcept {
    auto& self = *static_cast<pool_core*>(core);
    thread_cache* c = self.own_cache();
    if (c == nullptr) [[unlikely]]
        return self.release_slowly(nullptr, s);
    if (!c->put(s)) [[unlikely]]
        self.release_slowly(c, s);
}

bool pool_core::any_is_listed() noexcept { return listed.load(relaxed) != 0; }

std::size_t pool_core::stack_bytes_of(const void* core) noexcept {
    const auto& self = *static_cast<const pool_core*>(core);
    return self.verbs_->stack_bytes(self.allocator_);
}

std::size_t pool_core::trim(std::size_t max_count) noexcept {
    const std::lock_guard held(lock_);
    const std::size_t wish = std::min(max_count, above_minimum());
    if (list_count() < wish) {
        if (thread_cache* c = own_cache()) drain(*c, c->count());
        if (list_count() < wish) recall();
    }
    const std::size_t count = std::min(wish, list_count());
    destroy_oldest(count);
    return count;
}

time_point pool_core::release_unused(time_point now) noexcept {
    thread_cache* const c = own_cache();
    const std::lock_guard held(lock_);
    if (c != nullptr) bring_unused(*c, now);
    const std::size_t spare = unused_.spare(now, list_count(), least_in_a_period);
    destroy_oldest(std::min({spare, above_minimum(), most_at_a_call}));
    if (list_count() == 0 || unused_.next(now) != now) drop_unused_room();
    if (above_minimum() == 0) return never;
    if (list_count() != 0) return unused_.next(now);
    return c != nullptr && c->count() != 0 ? c->period_end : never;
}

void pool_core::clear() noexcept {
    const std::lock_guard held(lock_);
    clear_locked();
}

void pool_core::settle_all() noexcept {
    for (thread_cache* c = caches_; c != nullptr; c = c->next) settle(*c);
}

void pool_core::clear_locked() noexcept {
    for (thread_cache* c = caches_; c != nullptr; c = c->next) drain(*c, c->count());
    destroy_oldest(list_count());
}

void pool_core::set_limits(const stack_pool_options& limits) noexcept {
    const std::lock_guard held(lock_);
    limits_ = limits;
    recall();
}

stack_pool_options pool_core::limits() const noexcept {
    const std::lock_guard held(lock_);
    return limits_;
}

stack_pool_stats pool_core::stats() const noexcept {
    const std::lock_guard held(lock_);
    note_peak();
    const std::size_t each = verbs_->stack_bytes(allocator_);
    const std::size_t free = std::min(list_count() + cached_count(), alive_count());
    const std::size_t used = alive_count() - free;  // I1
    return {.used_count = used,
            .free_count = free,
            .used_bytes = used * each,
            .free_bytes = free * each,
            .mapped_bytes = verbs_->mapped_bytes(allocator_, alive_count()),
            .peak_used_count = peak_used_count_,
            .created_count = created_count_,
            .destroyed_count = destroyed_count_};
}

void pool_core::check() const noexcept {
    const std::lock_guard held(lock_);
    WEFT_ASSERT(first_ <= last_ && last_ <= capacity_, "stack_pool: the list is out of its array");
    WEFT_ASSERT(alive_count() <= capacity_, "stack_pool: I2");
    for (std::size_t i = first_; i < last_; ++i) WEFT_ASSERT(fits(list_[i]), "stack_pool: I3");
    for (const thread_cache* c = caches_; c != nullptr; c = c->next)
        WEFT_ASSERT(c->count() <= thread_cache::entry_count, "stack_pool: a cache is overfull");
}

// ---------------------------------------------------------------------------------------------

// The thread has no cache, or its cache is empty.
WEFT_COLD stack pool_core::acquire_slowly(thread_cache* c) noexcept {
    if (c == nullptr) c = cache_registry::make(*this);
    const std::lock_guard held(lock_);
    stack s;
    if (list_count() == 0) {
        s = create();
    } else {
        s = list_[--last_];
        unpoison_stack(s);  // I4
        listed.fetch_sub(1, relaxed);
        if (c != nullptr) {
            const std::size_t count = std::min(list_count(), thread_count() / 2);
            last_ -= count;
            listed.fetch_sub(count, relaxed);
            std::copy_n(list_ + last_, count, c->entries);
            c->end.store(c->entries + count, relaxed);
        }
    }
    unused_.taken(list_count());
    if (c != nullptr) settle(*c);
    note_peak();
    return s;
}

// The thread has no cache, or the cache is full or recalled, or the stack is not of the present
// size.
WEFT_COLD void pool_core::release_slowly(thread_cache* c, stack s) noexcept {
    WEFT_ASSERT_AT(s, "release of an empty stack", unknown_caller);
    if (c == nullptr) c = cache_registry::make(*this);
    const std::lock_guard held(lock_);
    note_peak();
    const std::size_t keep = thread_count();
    if (c != nullptr) {
        const bool recalled = c->full.load(relaxed) == c->entries;
        if (recalled || c->count() > keep)
            drain(*c, c->count());
        else if (c->count() == keep)
            drain(*c, (keep + 1) / 2);
    }
    if (!fits(s) || alive_count() > maximum()) {  // I3
        destroy({&s, 1});
    } else {
        verbs_->inspect(allocator_, s);
        poison_stack(s);  // I4
        if (c != nullptr && c->count() < keep) {
            stack* end = c->end.load(relaxed);
            *end = s;
            c->end.store(end + 1, relaxed);
        } else {
            push({&s, 1});
        }
    }
    if (c != nullptr) settle(*c);
}

void pool_core::attach(thread_cache& c) noexcept {
    const std::lock_guard held(lock_);
    c.pool = this;
    c.next = caches_;
    caches_ = &c;
}

void pool_core::detach(thread_cache& c) noexcept {
    const std::lock_guard held(lock_);
    note_peak();
    drain(c, c.count());
    thread_cache** p = &caches_;
    while (*p != &c) p = &(*p)->next;
    *p = c.next;
}

stack pool_core::create() noexcept {
    if (alive_count() >= maximum()) {
        recall();  // other threads return their cached stacks at their next release
        return {};
    }
    if (!make_room()) return {};
    const stack s = verbs_->acquire(allocator_);
    if (!s) return {};
    ++created_count_;
    if (verbs_->has_canaries(allocator_)) recall();  // each release is to be inspected
    return s;
}

void pool_core::destroy(std::span<const stack> stacks) noexcept {
    if (stacks.empty()) return;
    for (const stack s : stacks) unpoison_stack(s);  // I4
    verbs_->release(allocator_, stacks);
    destroyed_count_ += stacks.size();
}

bool pool_core::make_room() noexcept {  // I2
    if (alive_count() < capacity_) return true;
    const std::size_t capacity = std::max<std::size_t>(capacity_ * 2, 64);
    auto* more = static_cast<stack*>(os.allocate(capacity * sizeof(stack)));
    if (more == nullptr) return false;
    std::copy(list_ + first_, list_ + last_, more);
    os.free(list_);
    list_ = more;
    last_ -= first_;
    first_ = 0;
    capacity_ = capacity;
    return true;
}

void pool_core::push(std::span<const stack> stacks) noexcept {
    if (last_ + stacks.size() > capacity_) {
        std::copy(list_ + first_, list_ + last_, list_);
        last_ -= first_;
        first_ = 0;
    }
    std::copy(stacks.begin(), stacks.end(), list_ + last_);
    last_ += stacks.size();
    listed.fetch_add(stacks.size(), relaxed);
}

void pool_core::destroy_oldest(std::size_t count) noexcept {
    destroy({list_ + first_, count});
    first_ += count;
    listed.fetch_sub(count, relaxed);
    unused_.given(count);
}

// The list keeps its address range; its empty part keeps no pages.
void pool_core::drop_unused_room() noexcept {
    const auto at = [this](std::size_t i) { return reinterpret_cast<std::byte*>(list_ + i); };
    discard_pages(at(0), at(first_));
    discard_pages(at(last_), at(capacity_));
}

// Once a period: the stacks that the owner has not used since it last held the pool's lock.
void pool_core::bring_unused(thread_cache& c, time_point now) noexcept {
    if (now < c.period_end) return;
    c.period_end = after(now, unused_period);
    note_peak();
    drain(c, c.count_to(c.lowest));
}

void pool_core::drain(thread_cache& c, std::size_t count) noexcept {
    push({c.entries, count});
    const std::size_t rest = c.count() - count;
    std::copy_n(c.entries + count, rest, c.entries);
    c.end.store(c.entries + rest, relaxed);
    c.lowest.store(c.entries + rest, relaxed);
}

// Called under the pool's lock for the owner: restarts the record of the cache's lowest `end`, and
// gives the owner the count and the size of the stacks that its cache may keep.
void pool_core::settle(thread_cache& c) noexcept {
    c.lowest.store(c.end.load(relaxed), relaxed);
    c.full.store(c.entries + thread_count(), relaxed);
    if (verbs_->resizable) {
        c.low_bytes = verbs_->stack_bytes(allocator_) + 1;
        c.span_bytes = round_to_page(colour_bytes);
    }
}

void pool_core::recall() noexcept {
    for (thread_cache* c = caches_; c != nullptr; c = c->next) c->full.store(c->entries, relaxed);
}

// In use now are at most the stacks that the caches lacked when they were lowest (I1).
void pool_core::note_peak() const noexcept {
    std::size_t free = list_count();
    for (const thread_cache* c = caches_; c != nullptr; c = c->next) free += c->count_to(c->lowest);
    peak_used_count_ = std::max(peak_used_count_, alive_count() - std::min(free, alive_count()));
}

std::size_t pool_core::cached_count() const noexcept {
    std::size_t n = 0;
    for (const thread_cache* c = caches_; c != nullptr; c = c->next) n += c->count();
    return n;
}

std::size_t pool_core::minimum() const noexcept {
    const std::size_t each = std::max<std::size_t>(verbs_->stack_bytes(allocator_), 1);
    return std::max(limits_.min_count, limits_.min_bytes / each);
}

std::size_t pool_core::above_minimum() const noexcept {
    return alive_count() - std::min(minimum(), alive_count());
}

std::size_t pool_core::maximum() const noexcept {
    const std::size_t each = std::max<std::size_t>(verbs_->stack_bytes(allocator_), 1);
    const std::size_t by_count = limits_.max_count != 0 ? limits_.max_count : ~std::size_t{0};
    return limits_.max_bytes != 0 ? std::min(by_count, limits_.max_bytes / each) : by_count;
}

std::size_t pool_core::thread_count() const noexcept {
    if (verbs_->has_canaries(allocator_)) return 0;
    if (limits_.thread_count != ~std::size_t{0})
        return std::min(limits_.thread_count, thread_cache::entry_count);
    return maximum() == ~std::size_t{0} ? thread_cache::entry_count : 0;
}

bool pool_core::fits(stack s) const noexcept {
    if (!verbs_->resizable) return true;
    return s.bytes() - verbs_->stack_bytes(allocator_) - 1 < round_to_page(colour_bytes);
}

}  // namespace weft::detail
