// identity: what a fiber of weft.h has besides the fiber: its name, and its result.
//
// Design: a weft_t is a slot of a table and the generation of that slot. A fiber that has ended
// therefore never shares its weft_t with another, however late a caller asks.
//
//      weft_t: | generation | slot + 1 |       table: slot ---> identity ---> fiber_core
//
// An identity stays until its fiber was joined, or has ended detached.
//
// Invariants:
// N1  the table's lock guards all but `result` and `lacks_memory`; the fiber writes those two
//     before it is done, and they are read after a wait for its end, or after the end was seen
// N2  an identity is in the table for as long as the identity exists
// N3  while `joining`, only the joiner takes the identity out
//
// Model: none, one table under one lock.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/fiber/detail/fiber_core.hpp"
#include "weft/posix/weft.h"

namespace weft::detail {

struct identity {
    enum class claim : std::uint8_t { joinable, joining, detached };

    weft_t id = WEFT_NULL;
    fiber_core* core = nullptr;  // a reference of its own; null until the fiber is made
    void* result = WEFT_CANCELED;
    weft_t joins = WEFT_NULL;  // the fiber that this one waits to join
    claim how = claim::joinable;
    bool over = false;
    bool lacks_memory = false;  // no memory to begin: the function was not called

    static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes);
    }
};

class identities {
public:
    static identities& all();

    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }

    // All under the lock.
    void add(identity& i);  // throws bad_alloc
    identity* find(weft_t id) const noexcept;
    void remove(identity& i) noexcept;
    // Whether one fiber waits for another, directly or through others.
    bool waits_for(weft_t who, weft_t whom) const noexcept;

private:
    struct place {
        identity* who = nullptr;
        std::uint32_t count = 0;      // the generation of the slot
        std::uint32_t next_free = 0;  // in a free slot: the next free one, plus one
    };

    spin_lock lock_;
    std::vector<place> places_;
    std::uint32_t first_free_ = 0;  // plus one
};

// The identity was taken out of the table, and its fiber has ended or is to end by itself.
void release(identity& i) noexcept;
// As release(), for a detached fiber. Ends the program if the fiber had no memory to begin.
void release_detached(identity& i) noexcept;

// What a fiber's function holds, run or not: its destruction is the fiber's end.
class own_identity {
public:
    explicit own_identity(identity& i) noexcept : identity_(&i) {}
    own_identity(own_identity&& other) noexcept
        : identity_(std::exchange(other.identity_, nullptr)) {}
    own_identity& operator=(own_identity&&) = delete;
    ~own_identity() {
        if (identity_ != nullptr) end();
    }
    identity* operator->() const noexcept { return identity_; }

private:
    void end() noexcept;
    identity* identity_;
};

}  // namespace weft::detail
