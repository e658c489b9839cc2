#include "weft/coroutine/shared_stack_group.hpp"

#include <bit>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "weft/base/detail/block_cache.hpp"
#include "weft/coroutine/detail/on_top.hpp"
#include "weft/coroutine/detail/shared_seats.hpp"
#include "weft/coroutine/detail/shared_slot.hpp"
#include "weft/stack/default_stacks.hpp"
#include "weft/stack/detail/valgrind.hpp"

namespace weft {

namespace detail {
namespace {

// Whether to copy out at each suspension and poison the vacated stack.
constexpr bool watchful = WEFT_DEBUG || WEFT_ASAN;

constexpr unsigned char vacated_byte = 0xdb;

// A live part that is copied out.
struct saved_part {
    std::size_t bytes;
    std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

#if WEFT_ASAN
// Frames have red zones, so a live part is copied by instructions that ASan does not check.
__attribute__((no_sanitize("address"))) void copy_part(std::byte* to, const std::byte* from,
                                                       std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; ++i)
        static_cast<volatile std::byte*>(to)[i] = static_cast<const volatile std::byte*>(from)[i];
}
void poison(const weft::stack& s) noexcept { ASAN_POISON_MEMORY_REGION(s.limit, s.bytes()); }
void unpoison(const weft::stack& s) noexcept { ASAN_UNPOISON_MEMORY_REGION(s.limit, s.bytes()); }
#else
void copy_part(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    std::memcpy(to, from, bytes);
}
void poison(const weft::stack&) noexcept {}
void unpoison(const weft::stack&) noexcept {}
#endif

}  // namespace

// A group's stacks, its copier and its buffers.
struct shared_group {
    std::vector<shared_slot> slots;
    std::size_t stack_bytes;
    shared_seats seats;
    thread_block* thread = nullptr;  // the group's thread, set at the first resume
    // Written by that thread, read by any. Orders: relaxed, they are statistics.
    atomic<std::size_t> saved_bytes{0};
    atomic<std::size_t> copies{0};

    // Free buffers above block_cache's size, by size class, linked through their first word; at
    // most this many bytes: if all coroutines suspend somewhat deeper than before, none of these
    // buffers fits any more.
    static constexpr std::size_t most_spare_bytes = 256 << 10;
    std::byte* free_buffers[4 * 48] = {};
    atomic<std::size_t> spare_bytes{0};  // Orders: relaxed, as above.

    // The copier: a context on a small stack of its own, for an exchange that replaces the stack of
    // its requester. Made at the first start.
    annotated_context copier{};
    weft::stack copier_stack;
    shared_slot* slot = nullptr;            // the request: in this slot,
    control* bring = nullptr;               //   restore this coroutine (null: none),
    annotated_context* go_on_to = nullptr;  //   and switch to this context with the same word

    shared_group(std::size_t count, std::size_t bytes)
        : slots(count), stack_bytes(bytes), seats(count, &this_thread()) {
        for (shared_slot& s : slots) s.group = this;
    }
    ~shared_group();

    bool have_copier() noexcept;
    annotated_context& by_copier(shared_slot& s, control* in, annotated_context& next) noexcept;
    [[nodiscard]] bool exchange(shared_slot& s, control* in, thread_block& t) noexcept;
    [[nodiscard]] bool save(control& c, thread_block& t) noexcept;
    void restore(control& c) noexcept;
    std::byte* try_acquire_buffer(std::size_t bytes) noexcept;
    void release_buffer(std::byte* p, std::size_t bytes) noexcept;
    void note_spare(std::size_t more) noexcept {
        constexpr auto relaxed = std::memory_order_relaxed;
        spare_bytes.store(spare_bytes.load(relaxed) + more, relaxed);
    }
    void note_copy(std::size_t more_saved) noexcept {
        constexpr auto relaxed = std::memory_order_relaxed;
        saved_bytes.store(saved_bytes.load(relaxed) + more_saved, relaxed);
        copies.store(copies.load(relaxed) + 1, relaxed);
    }
};

namespace {

weft::stack take_stack(std::size_t bytes) noexcept {
    const weft::stack s = default_stacks(bytes).acquire();
    if (s) valgrind_stack::begin(s);
    return s;
}
void give_stack_back(std::size_t bytes, weft::stack s) noexcept {
    valgrind_stack::end(s);
    default_stacks(bytes).release(s);
}

// Four classes to each power of two.
struct buffer_class {
    std::size_t index;
    std::size_t bytes;
};
constexpr buffer_class class_of(std::size_t bytes) noexcept {
    const auto shift = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 3;
    const std::size_t eighths = (bytes - 1) >> shift;  // 4 to 7
    return {4 * shift + eighths % 4, (eighths + 1) << shift};
}
static_assert(class_of(1025).bytes == 1280 && class_of(1280).bytes == 1280);
static_assert(class_of(1281).index == class_of(1025).index + 1 && class_of(2048).bytes == 2048);
static_assert(class_of(2049).index == class_of(2048).index + 1);

void copier_enter(context* from, context* self, void* word) {
    auto& copier = *static_cast<annotated_context*>(self);
    arrival a = arrived(copier, {word, from, self});
    for (;;) {
        thread_block& t = this_thread();
        const control& asks = *t.running.get();
        shared_group& g = *asks.seat.slot->group;
        annotated_context* next = g.go_on_to;
        if (!g.exchange(*g.slot, g.bring, t) && g.bring != nullptr) {
            if (next == &t.resumer)  // a yield cannot report it
                fail(
                    "out of memory: no room to copy out a coroutine that yields to one on its "
                    "stack",
                    asks.info());
            next = &t.resumer;
            a.word = &no_room;
        }
        a = annotated_switch(copier, *next, a.word);
    }
}
const entry_point copier_entry = {copier_enter, nullptr, nullptr};

// The stack pointer of a coroutine that is not running on its stack. It is in the coroutine's own
// context, except for the resumer of the running coroutine: that context is in the thread block.
std::byte* stack_pointer_of(control& c, thread_block& t) noexcept {
    const context& where = &c == t.running.get()->resumer ? t.resumer : static_cast<context&>(c);
    return static_cast<std::byte*>(where.stack_pointer());
}

}  // namespace

shared_group::~shared_group() {
    for (shared_slot& s : slots) {
        unpoison(s.stack);
        if (s.stack) give_stack_back(stack_bytes, s.stack);
    }
    copier.retire();
    if (copier_stack) give_stack_back(smallest_default_stack_bytes, copier_stack);
    for (std::byte*& head : free_buffers) {
        while (head != nullptr) {
            std::byte* next;
            std::memcpy(&next, head, sizeof next);
            ::operator delete(head);
            head = next;
        }
    }
}

// Null if there is no memory.
std::byte* shared_group::try_acquire_buffer(std::size_t bytes) noexcept {
    if (bytes <= block_cache::maximum_block_bytes)
        return static_cast<std::byte*>(block_cache::try_acquire(bytes));
    const buffer_class its = class_of(bytes);
    std::byte*& head = free_buffers[its.index];
    if (head == nullptr) return static_cast<std::byte*>(::operator new(its.bytes, std::nothrow));
    std::byte* p = head;
    std::memcpy(&head, p, sizeof head);
    note_spare(-its.bytes);
    return p;
}

void shared_group::release_buffer(std::byte* p, std::size_t bytes) noexcept {
    if (bytes <= block_cache::maximum_block_bytes) return block_cache::release(p, bytes);
    const buffer_class its = class_of(bytes);
    if (spare_bytes.load(std::memory_order_relaxed) + its.bytes > most_spare_bytes) [[unlikely]]
        return ::operator delete(p);
    std::byte*& head = free_buffers[its.index];
    std::memcpy(p, &head, sizeof head);
    head = p;
    note_spare(its.bytes);
}

bool shared_group::save(control& c, thread_block& t) noexcept {
    const std::byte* sp = stack_pointer_of(c, t);
    const auto bytes = static_cast<std::size_t>(c.stack.top - sp);
    std::byte* buffer = try_acquire_buffer(sizeof(saved_part) + bytes);
    if (buffer == nullptr) return false;
    auto* part = ::new (buffer) saved_part{bytes};
    copy_part(part->data(), sp, bytes);
    c.seat.saved = buffer;
    note_copy(bytes);
    return true;
}

void shared_group::restore(control& c) noexcept {
    auto* part = reinterpret_cast<saved_part*>(c.seat.saved);
    const std::size_t bytes = part->bytes;
    valgrind_stack::open_down_to(c.stack, c.stack.top - bytes);
    copy_part(c.stack.top - bytes, part->data(), bytes);
    release_buffer(c.seat.saved, sizeof(saved_part) + bytes);
    c.seat.saved = nullptr;
    note_copy(-bytes);
}

// Puts `in` in place of the occupant. Runs on neither's stack. Returns false, without effect, if
// there is no memory for the occupant's live part.
bool shared_group::exchange(shared_slot& s, control* in, thread_block& t) noexcept {
    control* out = s.occupant;
    if (out != nullptr && !save(*out, t)) return false;
    unpoison(s.stack);
    if (WEFT_DEBUG && s.vacated != nullptr) {
        for (const std::byte* p = s.vacated; p != s.stack.top; ++p) {
            if (*p != std::byte{vacated_byte})
                fail(
                    "a write through a pointer into a shared stack, whose coroutine was copied "
                    "out");
        }
        s.vacated = nullptr;
    }
    if (in != nullptr) {
        if (in->seat.saved != nullptr) {
            restore(*in);
        } else {
            valgrind_stack::open_down_to(s.stack, s.stack.limit);
            in->make(s.stack.limit, s.stack.top, in->verbs->entry);  // it starts
        }
    } else if (watchful) {
        if (WEFT_DEBUG && out != nullptr) {
            s.vacated = stack_pointer_of(*out, t);
            std::memset(s.vacated, vacated_byte, static_cast<std::size_t>(s.stack.top - s.vacated));
        }
        poison(s.stack);
    }
    s.occupant = in;  // S1
    return true;
}

bool shared_group::have_copier() noexcept {
    if (copier_stack) return true;
    copier_stack = take_stack(smallest_default_stack_bytes);
    if (copier_stack) copier.make(copier_stack.limit, copier_stack.top, copier_entry);
    return static_cast<bool>(copier_stack);
}

annotated_context& shared_group::by_copier(shared_slot& s, control* in,
                                           annotated_context& next) noexcept {
    slot = &s;
    bring = in;
    go_on_to = &next;
    return copier;
}

shared_group& group_of(shared_stack_group& group) noexcept { return *group.group_; }

void take_seat(control& c, shared_stack_group& group) {
    shared_group& g = group_of(group);
    c.seat = {&g.slots[g.seats.take(&this_thread())], nullptr};
    c.word.raise(on_shared_stack);
}

void give_up_seat(control& c) noexcept {
    shared_slot* const s = std::exchange(c.seat.slot, nullptr);
    if (s != nullptr) s->group->seats.give_up(&this_thread());
}

weft::stack shared_slot_stack(shared_slot& slot) noexcept {
    if (!slot.stack && slot.group->have_copier()) slot.stack = take_stack(slot.group->stack_bytes);
    return slot.stack;
}

std::size_t shared_stack_bytes(const shared_slot& slot) noexcept { return slot.group->stack_bytes; }

namespace {

// S2: the coroutine that c displaced, or null.
control* displaced_by(const control& c) noexcept {
    control* r = c.resumer;
    while (r != nullptr && !(r->word.has(on_shared_stack) && r->seat.slot == c.seat.slot))
        r = r->resumer;
    return r;
}

}  // namespace

annotated_context& enter_shared(control& c, thread_block& t) {
    shared_slot& s = *c.seat.slot;
    shared_group& g = *s.group;
    if (g.thread == nullptr) g.thread = &t;
    if (g.thread != &t)
        fail("resume of a coroutine on a shared stack by a thread other than its group's",
             c.info());
    if (s.occupant == &c) return c;
    const control* resumer = c.resumer;
    const bool resumer_is_here = resumer != nullptr && resumer == s.occupant;
    // If there is no memory, the copier reports it.
    if (resumer_is_here || !g.exchange(s, &c, t)) return g.by_copier(s, &c, c);
    return c;
}

annotated_context& leave_shared(control& c, thread_block& t) {
    shared_slot& s = *c.seat.slot;
    if (control* const back = displaced_by(c); back != nullptr)
        return s.group->by_copier(s, back, t.resumer);
    if (watchful) return s.group->by_copier(s, nullptr, t.resumer);
    return t.resumer;
}

annotated_context& leave_shared_for_good(control& c, thread_block& t) {
    c.seat.slot->occupant = nullptr;  // S1: there is nothing to save
    return leave_shared(c, t);
}

void refuse_shared_frame(const control& c, std::source_location caller) {
    const control* resumer = current();
    if (c.word.has(on_shared_stack) && resumer != nullptr && resumer->word.has(on_shared_stack) &&
        resumer->seat.slot == c.seat.slot)
        fail("resume_with between coroutines on one shared stack", c.info(), caller);
}

}  // namespace detail

shared_stack_group::shared_stack_group(std::size_t stack_count, std::size_t stack_bytes)
    : group_(detail::make_owned<detail::shared_group>(stack_count == 0 ? 1 : stack_count,
                                                      stack_bytes)) {}

shared_stack_group::~shared_stack_group() {
    if (group_->seats.taken() != 0)
        fail("destruction of a shared_stack_group whose coroutines live", {}, unknown_caller);
}

shared_stack_stats shared_stack_group::stats() const noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    return {.coroutine_count = group_->seats.taken(),
            .saved_bytes = group_->saved_bytes.load(relaxed),
            .copy_count = group_->copies.load(relaxed),
            .spare_bytes = group_->spare_bytes.load(relaxed)};
}

}  // namespace weft
