// identity: what there is of a fiber of weft.h besides the fiber: its name, and what it returned.
//
// Its one idea: a weft_t is a place in a table and the how manieth it is to have that place, so
// that one which is no more is told from every other, however late somebody asks.
//
//      weft_t: | how manieth | place + 1 |       table: place ---> identity ---> fiber_core
//
// It stays until it was joined, or has ended detached.
//
// Invariants:
// N1  all but `result` and `lacks_memory` is guarded by the table's lock; those two are written by
//     the fiber before it is over, and read after that was waited for, or seen
// N2  it is in the table for as long as it exists
// N3  while `joining`, only who joins takes it out
//
// Model: none, one table under one lock.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "weft/base/block_cache.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/fiber/fiber_core.hpp"
#include "weft/posix/weft.h"

namespace weft::detail {

struct identity {
    enum class claim : std::uint8_t { joinable, joining, detached };

    weft_t id = WEFT_NOBODY;
    fiber_core* core = nullptr;  // a reference of its own; null until it is made
    void* result = WEFT_CANCELED;
    weft_t joins = WEFT_NOBODY;  // whom it waits for
    claim how = claim::joinable;
    bool over = false;
    bool lacks_memory = false;  // there was none to begin: the function was not called

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
    // Whether one waits for another, directly or through others.
    bool waits_for(weft_t who, weft_t whom) const noexcept;

private:
    struct place {
        identity* who = nullptr;
        std::uint32_t count = 0;      // the how manieth
        std::uint32_t next_free = 0;  // of a free one: the next, plus one
    };

    spin_lock lock_;
    std::vector<place> places_;
    std::uint32_t first_free_ = 0;  // plus one
};

// It was taken out of the table, and has ended or is to end by itself.
void forget(identity& i) noexcept;
// The same for a detached one. It ends the program where there was no memory to begin.
void forget_detached(identity& i) noexcept;

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
