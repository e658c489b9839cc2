#include "weft/stack/slab_stack.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <span>

#include "weft/base/assert.hpp"
#include "weft/stack/detail/asan_stack.hpp"
#include "weft/stack/detail/colour_offset.hpp"

namespace weft {

using detail::guard_kind;
using detail::memory_range;

namespace {

constexpr std::size_t smallest_slab_bytes = std::size_t{1} << 20;
constexpr std::size_t largest_slab_bytes = std::size_t{1} << 24;
constexpr std::size_t range_count = 32;  // advised in one call

struct slot {
    guard_kind guard = guard_kind::none;
    bool out = false;
};
static_assert(sizeof(slot) == 2);

// Ranges to be returned to the system, neighbours joined. A range is a whole slot, guard included:
// a drop does not remove guards.
class drop_batch {
public:
    ~drop_batch() { flush(); }

    void add(memory_range r) noexcept {
        if (count_ != 0) {
            memory_range& last = ranges_[count_ - 1];
            if (last.begin + last.bytes == r.begin || r.begin + r.bytes == last.begin) {
                last = {std::min(last.begin, r.begin), last.bytes + r.bytes};
                return;
            }
        }
        if (count_ == range_count) flush();
        ranges_[count_++] = r;
    }

    // A refusal changes nothing but how much memory is in use.
    void flush() noexcept {
        std::size_t done = 0;
        if (count_ > 1) done = detail::os.advise_many(ranges_, count_, detail::advice::drop);
        for (; done < count_; ++done) detail::os.advise(ranges_[done], detail::advice::drop);
        count_ = 0;
    }

private:
    memory_range ranges_[range_count];
    std::size_t count_ = 0;
};

}  // namespace

// The books of a slab, after its last slot: this struct, then the indices of the idle slots, then
// the slots. On the heap, later allocations above them would keep them resident after the slab was
// unmapped.
struct slab_stack::slab {
    std::byte* base;
    std::size_t bytes;  // with the books
    std::size_t stride;
    std::size_t stack_bytes;
    std::size_t guard_bytes;
    std::size_t first_number;
    std::uint32_t slot_count;
    std::uint32_t guarded;
    std::uint32_t carved;
    std::uint32_t idle_count;
    std::uint32_t out_count;
    bool listed;  // in open_
    slab* previous_open;
    slab* next_open;

    std::byte* end() const noexcept { return base + slot_count * stride; }  // of the slots
    std::uint32_t* idle() noexcept { return reinterpret_cast<std::uint32_t*>(this + 1); }
    slot* slots() noexcept { return reinterpret_cast<slot*>(idle() + slot_count); }
    bool full() const noexcept { return out_count == slot_count; }

    memory_range range(std::uint32_t i) const noexcept { return {base + i * stride, stride}; }
    stack stack_of(std::uint32_t i) const noexcept {
        std::byte* begin = base + i * stride;
        return {begin + guard_bytes, detail::coloured_top(begin + stride, first_number + i)};
    }
};

struct slab_stack::place {
    slab* in;
    std::uint32_t index;
};

slab_stack::~slab_stack() {
    WEFT_ASSERT_AT(out_count_ == 0, "destruction of a stack allocator whose stacks are in use",
                   unknown_caller);
    while (slab_count_ != 0 && remove_slab(*slabs_[slab_count_ - 1])) continue;
    detail::os.free(slabs_);
}

stack slab_stack::acquire() noexcept {
    slab* in = open_ != nullptr ? open_ : add_slab();
    if (in == nullptr) return {};
    if (in->idle_count == 0 && in->carved == in->guarded) guard_some(*in);  // I2
    const std::uint32_t i = in->idle_count != 0 ? in->idle()[--in->idle_count] : in->carved++;
    in->slots()[i].out = true;
    ++in->out_count;
    ++out_count_;
    if (in->full()) close(*in);  // I4
    return in->stack_of(i);
}

void slab_stack::release(std::span<const stack> stacks) noexcept {
    drop_batch drops;
    for (const stack s : stacks) {
        inspect(s);
        detail::unpoison_stack(s);
        const auto [in, i] = find(s);
        in->slots()[i].out = false;
        in->idle()[in->idle_count++] = i;
        --in->out_count;
        --out_count_;
        if (!in->listed && in->stack_bytes == stack_bytes()) open(*in);
        if (in->out_count == 0) {
            drops.flush();                   // before these addresses can be mapped again
            if (remove_slab(*in)) continue;  // I3
        }
        if (in->slots()[i].guard == guard_kind::canary)
            detail::discard_pages(s.limit, in->range(i).begin + in->stride);
        else
            drops.add(in->range(i));  // I1
    }
}

void slab_stack::inspect(stack s) const noexcept {
    const auto [in, i] = find(s);
    if (in->slots()[i].guard == guard_kind::canary)
        WEFT_ASSERT(detail::canary_intact(s.limit), "a stack has overflowed: its canary is gone");
}

std::size_t slab_stack::stack_bytes() const noexcept {
    return detail::round_to_page(
        std::clamp<std::size_t>(stack_bytes_, 1, detail::most_stack_bytes));
}

void slab_stack::set_stack_bytes(std::size_t stack_bytes) noexcept {
    stack_bytes_ = stack_bytes;
    while (open_ != nullptr) close(*open_);  // I4
}

void slab_stack::check() const noexcept {
    std::size_t out = 0;
    std::size_t bytes = 0;
    for (std::size_t n = 0; n < slab_count_; ++n) {
        slab& in = *slabs_[n];
        WEFT_ASSERT(n == 0 || slabs_[n - 1]->base + slabs_[n - 1]->bytes <= in.base,
                    "slab_stack: slabs overlap or are out of order");
        WEFT_ASSERT(in.carved <= in.guarded && in.guarded <= in.slot_count, "slab_stack: I2");
        WEFT_ASSERT(in.out_count + in.idle_count == in.carved, "slab_stack: I2");
        WEFT_ASSERT(!in.listed || !in.full(), "slab_stack: I4");
        const auto flags = std::span(in.slots(), in.slot_count);
        WEFT_ASSERT(in.out_count == static_cast<std::size_t>(
                                        std::ranges::count_if(flags, [](slot x) { return x.out; })),
                    "slab_stack: a slab miscounts its slots");
        out += in.out_count;
        bytes += in.bytes;
    }
    WEFT_ASSERT(out == out_count_ && bytes == mapped_bytes_, "slab_stack: totals are wrong");
}

std::size_t slab_stack::stride() const noexcept {
    const std::size_t guard = std::clamp<std::size_t>(guard_bytes_, 1, detail::most_stack_bytes);
    return detail::round_to_odd_pages(detail::round_to_page(guard) + stack_bytes() +
                                      detail::round_to_page(detail::colour_bytes));
}

// Doubles the mapped memory, within the bounds of a slab; one slot at least, and one slot at a time
// if the system has no larger piece.
slab_stack::slab* slab_stack::add_slab() noexcept {
    if (stack_bytes_ > detail::most_stack_bytes || !make_room_for_slab()) return nullptr;
    const std::size_t each = stride();
    const std::size_t wish = std::clamp(mapped_bytes_, smallest_slab_bytes, largest_slab_bytes);
    std::size_t count = std::max<std::size_t>(wish / each, 1);
    const auto bytes = [&] {
        const std::size_t books = sizeof(slab) + count * (sizeof(std::uint32_t) + sizeof(slot));
        return count * each + detail::round_to_page(books);
    };
    std::byte* base = detail::os.map(bytes());
    if (base == nullptr && count > 1) {
        count = 1;
        base = detail::os.map(bytes());
    }
    if (base == nullptr) return nullptr;
    auto* in = new (base + count * each) slab{};
    in->base = base;
    in->bytes = bytes();
    in->stride = each;
    in->stack_bytes = stack_bytes();
    in->guard_bytes = each - stack_bytes() - detail::round_to_page(detail::colour_bytes);
    in->first_number = next_slot_number_;
    in->slot_count = static_cast<std::uint32_t>(count);
    std::uninitialized_fill_n(in->slots(), count, slot{});
    next_slot_number_ += count;
    mapped_bytes_ += in->bytes;
    const std::size_t at = slab_above(base);
    std::move_backward(slabs_ + at, slabs_ + slab_count_, slabs_ + slab_count_ + 1);
    slabs_[at] = in;
    ++slab_count_;
    open(*in);
    return in;
}

bool slab_stack::remove_slab(slab& in) noexcept {
    const auto count_of = [&in](guard_kind kind) {
        return static_cast<std::size_t>(
            std::ranges::count(std::span(in.slots(), in.guarded), kind, &slot::guard));
    };
    const std::size_t canaries = count_of(guard_kind::canary);
    std::size_t protections = count_of(guard_kind::protection);
    const std::size_t above = slab_above(in.base);
    slab gone = in;  // a copy: the books are unmapped too
    if (!detail::os.unmap({in.base, in.bytes})) return false;
    canary_count_ -= canaries;
    for (; protections != 0; --protections) detail::release_guard(guard_kind::protection);
    if (gone.listed) close(gone);
    mapped_bytes_ -= gone.bytes;
    std::move(slabs_ + above, slabs_ + slab_count_, slabs_ + above - 1);
    --slab_count_;
    return true;
}

bool slab_stack::make_room_for_slab() noexcept {
    if (slab_count_ < slab_capacity_) return true;
    const std::size_t capacity = std::max<std::size_t>(slab_capacity_ * 2, 16);
    auto* more = static_cast<slab**>(detail::os.allocate(capacity * sizeof(slab*)));
    if (more == nullptr) return false;
    std::copy_n(slabs_, slab_count_, more);
    detail::os.free(slabs_);
    slabs_ = more;
    slab_capacity_ = capacity;
    return true;
}

// Guards one slot at least, and many ahead if that takes a single call: twice as many each time, so
// that a program with few coroutines does not pay for many.
void slab_stack::guard_some(slab& in) noexcept {
    memory_range ranges[range_count];
    const std::size_t wish = std::clamp<std::size_t>(in.guarded, 4, range_count);
    const std::size_t count = std::min<std::size_t>(wish, in.slot_count - in.guarded);
    for (std::size_t i = 0; i < count; ++i)
        ranges[i] = {in.base + (in.guarded + i) * in.stride, in.guard_bytes};
    std::size_t marked = detail::install_markers(ranges, count);
    for (; marked != 0; --marked) in.slots()[in.guarded++].guard = guard_kind::marker;
    if (in.guarded != in.carved) return;
    guard_kind kind = detail::install_fault_guard(ranges[0]);
    if (kind == guard_kind::none) {
        kind = guard_kind::canary;
        ++canary_count_;
        detail::write_canary(ranges[0].begin + in.guard_bytes);
    }
    in.slots()[in.guarded++].guard = kind;
}

void slab_stack::open(slab& in) noexcept {
    in.previous_open = nullptr;
    in.next_open = open_;
    if (open_ != nullptr) open_->previous_open = &in;
    open_ = &in;
    in.listed = true;
}

void slab_stack::close(slab& in) noexcept {
    (in.previous_open != nullptr ? in.previous_open->next_open : open_) = in.next_open;
    if (in.next_open != nullptr) in.next_open->previous_open = in.previous_open;
    in.listed = false;
}

// The index of the first slab that begins above p.
std::size_t slab_stack::slab_above(const std::byte* p) const noexcept {
    slab** const end = slabs_ + slab_count_;
    return static_cast<std::size_t>(
        std::upper_bound(slabs_, end, p,
                         [](const std::byte* x, const slab* y) { return x < y->base; }) -
        slabs_);
}

slab_stack::place slab_stack::find(stack s) const noexcept {
    const std::size_t above = slab_above(s.limit);
    slab* in = above != 0 ? slabs_[above - 1] : nullptr;
    if (in != nullptr && s.limit < in->end()) {
        const auto i =
            static_cast<std::uint32_t>(static_cast<std::size_t>(s.limit - in->base) / in->stride);
        if (in->slots()[i].out && in->stack_of(i) == s) return {in, i};
    }
    fail("release of a stack that is not out of this allocator (another's, or released twice)", {},
         unknown_caller);
}

}  // namespace weft
