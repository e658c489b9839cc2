// slab_stack: stacks cut from slabs, the memory under a stack_pool.
//
// Design: one mapping serves many stacks, so that 100 000 guarded stacks need a few hundred
// mappings and few system calls: slabs grow from 1 to 16 MiB, and guards are installed ahead, up to
// 32 in one call. The allocator never touches a stack's memory. Its books, six bytes a slot, are
// after the last slot, so that a slab is released whole.
//
//      slab:  | guard | slot 0 ........ top 0 ~ | guard | slot 1 ........ top 1 ~ | ... | books |
//             |<---------- stride ------------->|        (~ colouring offset of each)
//
//      slot:  fresh --carve--> out --release--> idle --acquire--> out
//
// Invariants:
//   I1  a fresh or an idle slot has no memory of its own; release() returns it to the system
//   I2  every slot below `guarded` has its guard, every slot below `carved` is out or idle
//   I3  a slab with no slot out is unmapped (or stays, all idle, if the system refuses)
//   I4  each slab in `open_` has a fresh or an idle slot, of the present size
//
// Limits: the allocator takes memory from the system at every acquire and returns it at every
// release: put a stack_pool in front. One thread at a time; the pool ensures that.
//
//   weft::slab_stack stacks(64 * 1024);
//   weft::stack s = stacks.acquire();
//   stacks.release(s);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/stack/detail/guard.hpp"
#include "weft/stack/stack.hpp"

namespace weft {

class slab_stack {
public:
    // Both are rounded up to pages, one at least.
    constexpr explicit slab_stack(std::size_t stack_bytes = default_stack_bytes,
                                  std::size_t guard_bytes = 4096) noexcept
        : stack_bytes_(stack_bytes), guard_bytes_(guard_bytes) {}
    // Returns all memory to the system. Aborts if a stack is out.
    ~slab_stack();
    slab_stack(const slab_stack&) = delete;
    slab_stack& operator=(const slab_stack&) = delete;

    // If no guard that faults is possible, the stack has a canary.
    stack acquire() noexcept;

    // Aborts on a stack that is not out, and on one whose canary is gone.
    void release(stack s) noexcept { release(std::span<const stack>(&s, 1)); }
    void release(std::span<const stack> stacks) noexcept;  // neighbours are returned in one call

    std::size_t stack_bytes() const noexcept;

    // Applies to stacks acquired from now on; stacks that are out are released as before.
    void set_stack_bytes(std::size_t stack_bytes) noexcept;

    // Aborts if the stack has grown into its canary; no effect if guards fault.
    void inspect(stack s) const noexcept;
    bool has_canaries() const noexcept { return canary_count_ != 0; }

    std::size_t mapped_bytes() const noexcept { return mapped_bytes_; }
    std::size_t out_count() const noexcept { return out_count_; }

    // Walks everything; aborts if an invariant does not hold.
    void check() const noexcept;

private:
    struct slab;
    struct place;

    std::size_t stride() const noexcept;
    slab* add_slab() noexcept;
    bool remove_slab(slab&) noexcept;
    bool make_room_for_slab() noexcept;
    void guard_some(slab&) noexcept;
    void open(slab&) noexcept;
    void close(slab&) noexcept;
    std::size_t slab_above(const std::byte*) const noexcept;
    place find(stack s) const noexcept;

    std::size_t stack_bytes_;
    std::size_t guard_bytes_;
    slab** slabs_ = nullptr;  // sorted by address
    std::size_t slab_count_ = 0;
    std::size_t slab_capacity_ = 0;
    slab* open_ = nullptr;
    std::size_t mapped_bytes_ = 0;
    std::size_t out_count_ = 0;
    std::size_t canary_count_ = 0;      // slots with a canary, out or not
    std::size_t next_slot_number_ = 0;  // decides on colouring offsets
};

static_assert(stack_allocator<slab_stack>);

}  // namespace weft
