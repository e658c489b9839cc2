// id_map<Id>: ids of the user's own, and the manager's task of each.
//
// Design: the manager's own ids are unchanged, and a user's id is one look-up more. An entry is one
// of the hooks of its task, and the first of them, so that it is removed first when the task is
// done.
//
// Sharded by the id's std::hash. Any thread. A change names the entry and not only the id: the id
// of a task that is done may be another task's by then.
//
// Model: none, the entries of a shard are changed only under its mutex.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "weft/base/detail/fibonacci_hash.hpp"
#include "weft/base/detail/system_mutex.hpp"
#include "weft/manager/detail/managed_task.hpp"

namespace weft::detail {

template <class Id>
class id_map {
public:
    // The entry of one task; stored with the task, and the id with it.
    struct entry final : finish_hook {
        id_map& map;
        const Id id;

        entry(id_map& m, Id i)
            : finish_hook{nullptr,
                          [](finish_hook& h, managed_task&) noexcept {
                              auto& self = static_cast<entry&>(h);
                              self.map.erase(self);
                          },
                          [](finish_hook& h) noexcept { delete static_cast<entry*>(&h); }},
              map(m),
              id(std::move(i)) {}
    };

    // For a task that is being made. False: the id is in use. Throws bad_alloc.
    [[nodiscard]] bool reserve(const entry& e) {
        shard& s = shard_of(e.id);
        const std::lock_guard held(s.lock);
        return s.keys.try_emplace(e.id, known{&e, 0}).second;
    }
    // The task has its key now; without effect if it is done already, and the id may be another
    // task's.
    void set(const entry& e, std::uint64_t key) {
        shard& s = shard_of(e.id);
        const std::lock_guard held(s.lock);
        if (const auto at = s.keys.find(e.id); at != s.keys.end() && at->second.of == &e)
            at->second.key = key;
    }
    void erase(const entry& e) noexcept {
        shard& s = shard_of(e.id);
        const std::lock_guard held(s.lock);
        if (const auto at = s.keys.find(e.id); at != s.keys.end() && at->second.of == &e)
            s.keys.erase(at);
    }
    // 0: none.
    std::uint64_t find(const Id& id) const {
        const shard& s = shard_of(id);
        const std::lock_guard held(s.lock);
        const auto at = s.keys.find(id);
        return at != s.keys.end() ? at->second.key : 0;
    }

private:
    static constexpr std::size_t shard_count = 16;

    struct known {
        const entry* of;
        std::uint64_t key;  // 0: its task is being made
    };
    struct shard {
        mutable system_mutex lock;
        std::unordered_map<Id, known> keys;
    };
    shard& shard_of(const Id& id) const {
        // Mixed, since many a std::hash is the number itself.
        return shards_[fibonacci_hash(std::hash<Id>()(id), std::countr_zero(shard_count))];
    }

    mutable std::array<shard, shard_count> shards_;
};

// The id of a task that is being made; released if the task does not enter the manager.
template <class Id>
class reserved_id {
    using entry_type = typename id_map<Id>::entry;

public:
    // Throws bad_alloc. `entry` is null where the id is in use.
    reserved_id(id_map<Id>& m, Id i) : made_(std::make_unique<entry_type>(m, std::move(i))) {
        if (m.reserve(*made_)) entry = made_.get();
    }
    reserved_id(const reserved_id&) = delete;
    reserved_id& operator=(const reserved_id&) = delete;
    ~reserved_id() {
        if (entry != nullptr) entry->map.erase(*entry);
    }

    // From now on the id is stored with the task.
    void give_to(managed_task& t) noexcept {
        t.own_id = &entry->id;
        static_cast<void>(t.add_hook(*made_.release()));  // it has not begun
    }
    void entered(std::uint64_t key) noexcept {
        entry->map.set(*entry, key);
        entry = nullptr;
    }

    entry_type* entry = nullptr;

private:
    std::unique_ptr<entry_type> made_;
};

// For a manager with its own ids.
struct no_reserved_id {
    static constexpr const void* entry = nullptr;
    void give_to(managed_task&) const noexcept {}
    void entered(std::uint64_t) const noexcept {}
};

}  // namespace weft::detail
