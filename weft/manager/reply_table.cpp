#include "weft/manager/detail/reply_table.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include "weft/base/assert.hpp"

namespace weft::detail {

reply_table::~reply_table() {
    WEFT_ASSERT_AT(count() == 0, "a task_manager is destroyed while a reply is awaited from it",
                   unknown_caller);
}

// By 2^64 divided by the golden ratio, so that consecutive numbers are far apart. Numbers that a
// peer chooses are only looked up.
std::uint64_t reply_table::mixed(std::uint64_t sequence) noexcept {
    return sequence * 0x9E37'79B9'7F4A'7C15u;
}

awaited_reply** reply_table::find(shard& s, std::uint64_t sequence, std::uint64_t mix) noexcept {
    if (s.bucket_count == 0) return nullptr;
    awaited_reply** at = &s.buckets[bucket_of(mix, s.bucket_count)];
    while (*at != nullptr && (*at)->sequence != sequence) at = &(*at)->next;
    return *at != nullptr ? at : nullptr;
}

// Doubles the buckets, which are made without the lock; unless another thread did so first.
void reply_table::grow(shard& s, std::size_t from) {
    const std::size_t wanted = from == 0 ? first_buckets : 2 * from;
    auto made = std::make_unique<awaited_reply*[]>(wanted);
    const std::lock_guard held(s.lock);
    if (s.bucket_count != from) return;
    for (std::size_t i = 0; i < from; ++i) {
        while (awaited_reply* r = s.buckets[i]) {
            s.buckets[i] = r->next;
            awaited_reply*& first = made[bucket_of(mixed(r->sequence), wanted)];
            r->next = std::exchange(first, r);
        }
    }
    s.buckets.swap(made);
    s.bucket_count = wanted;
}

bool reply_table::insert(awaited_reply& r) {
    const std::uint64_t mix = mixed(r.sequence);
    shard& s = shard_of(mix);
    for (;;) {
        std::size_t full;
        {
            const std::lock_guard held(s.lock);
            full = s.bucket_count;
            if (s.count < full) {
                if (find(s, r.sequence, mix) != nullptr) return false;
                awaited_reply*& first = s.buckets[bucket_of(mix, full)];
                r.next = std::exchange(first, &r);
                ++s.count;
                return true;
            }
        }
        grow(s, full);
    }
}

bool reply_table::remove(awaited_reply& r) noexcept {
    const std::uint64_t mix = mixed(r.sequence);
    shard& s = shard_of(mix);
    const std::lock_guard held(s.lock);
    awaited_reply** const at = find(s, r.sequence, mix);
    if (at == nullptr || *at != &r) return false;
    *at = r.next;
    --s.count;
    return true;
}

awaited_reply* reply_table::take(std::uint64_t sequence, type_id type) noexcept {
    const std::uint64_t mix = mixed(sequence);
    shard& s = shard_of(mix);
    {
        const std::lock_guard held(s.lock);
        awaited_reply** const at = find(s, sequence, mix);
        if (at != nullptr && (*at)->type == type) {
            awaited_reply* const r = *at;
            *at = r->next;
            --s.count;
            return r;
        }
        if (at != nullptr) {
            misfits_.fetch_add(1, std::memory_order_relaxed);
            return nullptr;
        }
    }
    late_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

std::size_t reply_table::count() const noexcept {
    std::size_t all = 0;
    for (const shard& s : shards_) {
        const std::lock_guard held(s.lock);
        all += s.count;
    }
    return all;
}

}  // namespace weft::detail
