// reply_table: the waits for replies, by number.
//
// Design: the waiter's own node is in the table, so that nothing is allocated for a wait but the
// table's buckets, which grow with the number of simultaneous waits. Only the caller that takes a
// node out of the table may complete it. A reply for a number without a waiter, or whose wait has
// ended, is counted.
//
// Sharded by number. Any thread.
//
// Model: test/model/reply_table_test.cpp
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/base/platform.hpp"
#include "weft/manager/any_data.hpp"

namespace weft::detail {

// A wait for a reply.
struct awaited_reply {
    std::uint64_t sequence = 0;
    type_id const type;
    awaited_reply* next = nullptr;  // in its bucket

    explicit awaited_reply(type_id t) noexcept : type(t) {}
    awaited_reply(const awaited_reply&) = delete;
    awaited_reply& operator=(const awaited_reply&) = delete;
};

class reply_table {
public:
    reply_table() noexcept = default;
    reply_table(const reply_table&) = delete;
    reply_table& operator=(const reply_table&) = delete;
    ~reply_table();  // no wait may be left

    // A number that was not given out before.
    std::uint64_t new_sequence() noexcept {
        return last_.fetch_add(1, std::memory_order_relaxed) + 1;
    }

    // From now on it is found. False: another wait has that number. Throws bad_alloc.
    [[nodiscard]] bool insert(awaited_reply& r);
    // The wait ends without a reply. False: a caller has taken it and is completing it.
    [[nodiscard]] bool remove(awaited_reply& r) noexcept;
    // The wait for that number, which only the caller may complete; null, and counted: there is
    // none, or it is for a value of another type.
    [[nodiscard]] awaited_reply* take(std::uint64_t sequence, type_id type) noexcept;

    std::size_t count() const noexcept;
    std::uint64_t late_count() const noexcept { return late_.load(std::memory_order_relaxed); }
    std::uint64_t misfit_count() const noexcept { return misfits_.load(std::memory_order_relaxed); }

private:
    static constexpr std::size_t shard_count = 16;
    static constexpr std::size_t first_buckets = 16;

    struct alignas(cache_line_bytes) shard {
        mutable spin_lock lock;
        std::unique_ptr<awaited_reply*[]> buckets;
        std::size_t bucket_count = 0;  // a power of two, or none
        std::size_t count = 0;
    };

    static std::uint64_t mixed(std::uint64_t sequence) noexcept;
    shard& shard_of(std::uint64_t mix) noexcept {
        return shards_[static_cast<std::size_t>(mix >> 60)];
    }
    static std::size_t bucket_of(std::uint64_t mix, std::size_t bucket_count) noexcept {
        return static_cast<std::size_t>(mix >> 28) & (bucket_count - 1);
    }
    // Under the lock: the pointer to the node, or null.
    static awaited_reply** find(shard& s, std::uint64_t sequence, std::uint64_t mix) noexcept;
    static void grow(shard& s, std::size_t from);

    std::array<shard, shard_count> shards_;
    // Orders: relaxed, a number only has to be unique, and the others are only counted.
    atomic<std::uint64_t> last_{0};
    atomic<std::uint64_t> late_{0};
    atomic<std::uint64_t> misfits_{0};
};

}  // namespace weft::detail
