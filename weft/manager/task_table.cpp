#include "weft/manager/detail/task_table.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>

#include "weft/base/errc.hpp"

namespace weft::detail {
namespace {

constexpr std::size_t shard_limit = 1024;

std::size_t shard_count_for(std::size_t wanted) noexcept {
    return std::bit_ceil(std::clamp(wanted, std::size_t{1}, shard_limit));
}

// Each thread has a number, in the order of their first calls.
unsigned number_of_thread() noexcept {
    // Orders: relaxed, the numbers only have to differ.
    static constinit atomic<unsigned> given{0};
    thread_local const unsigned mine = given.fetch_add(1, std::memory_order_relaxed);
    return mine;
}

}  // namespace

task_table::task_table(std::size_t shard_count)
    : shard_mask_(shard_count_for(shard_count) - 1),
      shard_bits_(static_cast<unsigned>(std::bit_width(shard_mask_))),
      shards_(std::make_unique<shard[]>(shard_mask_ + 1)) {}

task_table::~task_table() {
    WEFT_ASSERT_AT(count().living == 0, "a task_manager is destroyed while tasks live in it",
                   unknown_caller);
}

// Slots: chunk 0 has 0 .. 63, chunk 1 has 64 .. 191, chunk 2 has 192 .. 447.
WEFT_ALWAYS_INLINE task_table::slot& task_table::slot_at(const shard& s, std::uint32_t i) noexcept {
    const std::uint32_t shifted = i + (1u << first_bits);
    const unsigned top = static_cast<unsigned>(std::bit_width(shifted)) - 1;
    return s.chunks[top - first_bits].slots[shifted - (1u << top)];
}

task_table::slot_deadline& task_table::deadline_at(const shard& s, std::uint32_t i) noexcept {
    const std::uint32_t shifted = i + (1u << first_bits);
    const unsigned top = static_cast<unsigned>(std::bit_width(shifted)) - 1;
    return s.chunks[top - first_bits].deadlines[shifted - (1u << top)];
}

WEFT_NOINLINE task_table::shard& task_table::shard_here() noexcept {
    return shards_[number_of_thread() & shard_mask_];
}

std::uint64_t task_table::id_of(const shard& s, const slot& place) const noexcept {
    const auto which = static_cast<std::uint64_t>(&s - shards_.get());
    return place.generation << index_bits | std::uint64_t{place.index} << shard_bits_ | which;
}

WEFT_ALWAYS_INLINE task_table::slot* task_table::slot_of(const shard& s,
                                                         std::uint64_t id) const noexcept {
    const auto i = static_cast<std::uint32_t>((id & index_mask) >> shard_bits_);
    if (i >= s.slot_count) return nullptr;
    slot& place = slot_at(s, i);
    return place.generation == id >> index_bits && place.task != nullptr ? &place : nullptr;
}

// Owns the shard's lock, with a free slot, or room for one more; does not own it if all are used
// up.
std::unique_lock<home_lock> task_table::lock_with_room(shard& s) {
    std::unique_lock held(s.lock);
    while (s.first_free == none && s.slot_count == (((1u << s.chunk_count) - 1) << first_bits)) {
        const unsigned next = s.chunk_count;
        if (first_bits + next + 1 + shard_bits_ > index_bits) {
            held.unlock();
            break;
        }
        held.unlock();
        const std::size_t count = std::size_t{1} << (first_bits + next);
        chunk made{std::make_unique<slot[]>(count), std::make_unique<slot_deadline[]>(count)};
        held.lock();
        if (s.chunk_count == next) s.chunks[s.chunk_count++] = std::move(made);
    }
    return held;
}

result<std::uint64_t> task_table::insert(managed_task& t, tick deadline, const live_count& all) {
    shard& s = shard_here();
    const auto held = lock_with_room(s);
    if (!held.owns_lock()) return failure(manager_errc::too_many_tasks);
    if (all.is_closed()) [[unlikely]]
        return failure(errc::closed);
    std::uint32_t i = s.first_free;
    if (i != none) {
        s.first_free = slot_at(s, i).next_free;
    } else {
        i = s.slot_count++;
        slot_at(s, i).index = i;
    }
    slot& place = slot_at(s, i);
    place.task = &t;  // T1
    t.key = id_of(s, place);
    ++s.counts.living;
    if (deadline != tick_never) arm(s, place, deadline);
    return t.key;
}

bool task_table::remove(managed_task& t, managed_status how) noexcept {
    shard& s = shard_of(t.key);
    const std::lock_guard held(s.lock);
    slot& place = *slot_of(s, t.key);
    const bool timed = disarm(s, place);  // T2
    t.kept = place.kept();
    place.mail = 0;
    place.task = nullptr;
    if (++place.generation <= last_generation)
        place.next_free = std::exchange(s.first_free, place.index);
    --s.counts.living;
    ++s.counts.ended[static_cast<std::size_t>(how)];
    return timed;
}

managed_ref task_table::find(std::uint64_t id) noexcept {
    shard& s = shard_of(id);
    const std::lock_guard held(s.lock);
    slot* const place = slot_of(s, id);
    return place != nullptr ? managed_ref(*place->task) : managed_ref();
}

// -- resumes --------------------------------------------------------------------------------------

resume_offer task_table::offer(std::uint64_t id, type_id type, kept_value* keep) noexcept {
    shard& s = shard_of(id);
    const std::lock_guard held(s.lock);
    slot* const place = slot_of(s, id);
    if (place == nullptr) return {.refused = manager_errc::no_such_task};
    if (waiter* const w = place->suspended()) {
        if (place->is_closed()) return {.refused = manager_errc::already_stopping};
        if (place->wanted != type) return {.refused = manager_errc::type_mismatch};
        place->mail = 0;  // T4
        return {.to = w, .turn = place->turn, .home = place->home};
    }
    if (place->task->state.is_decided()) return {.refused = manager_errc::already_stopping};
    if (place->mail != 0) return {.refused = manager_errc::value_pending};
    if (keep == nullptr) return {};
    place->mail = reinterpret_cast<std::uintptr_t>(keep) + kept_tag;  // T4
    return {.kept = true};
}

kept_value* task_table::suspend(managed_task& t, waiter& w, type_id type) noexcept {
    shard& s = shard_of(t.key);
    const std::lock_guard held(s.lock);
    slot& place = *slot_of(s, t.key);
    if (place.suspended() != nullptr) fail("a task suspends itself twice at once", t.info());
    if (kept_value* const kept = place.kept()) {
        place.mail = 0;
        return kept;
    }
    w.wait_for(&place);  // prefetched before the waiter's turn, and so for its next suspend
    place.mail =
        reinterpret_cast<std::uintptr_t>(&w) + (w.may_be_stopped() ? 0 : shielded_tag);  // T4
    place.wanted = type;
    place.turn = {w.handle, w.of};
    place.home = w.of->home;
    return nullptr;
}

bool task_table::cancel(managed_task& t, waiter& w) noexcept {
    shard& s = shard_of(t.key);
    const std::lock_guard held(s.lock);
    slot* const place = slot_of(s, t.key);
    if (place == nullptr) return true;
    if (place->suspended() != &w) return false;
    place->mail = 0;
    return true;
}

// The wait is left in the slot: what ends the task is on its way to it.
void task_table::close(std::uint64_t id) noexcept {
    shard& s = shard_of(id);
    const std::lock_guard held(s.lock);
    slot* const place = slot_of(s, id);
    if (place != nullptr && place->suspended() != nullptr && !place->is_shielded())
        place->mail |= closed_tag;
}

// -- deadlines ----------------------------------------------------------------------------------

void task_table::arm(shard& s, slot& place, tick deadline) noexcept {
    slot_deadline& d = deadline_at(s, place.index);
    d.of = &place;
    s.timers.add(d, deadline);
    ++s.counts.deadlines;
    if (deadline < s.next.load(std::memory_order_relaxed))
        s.next.store(deadline, std::memory_order_relaxed);  // T3
}

bool task_table::disarm(shard& s, slot& place) noexcept {
    if (s.counts.deadlines == 0 || !s.timers.remove(deadline_at(s, place.index))) return false;
    if (--s.counts.deadlines == 0) s.next.store(tick_never, std::memory_order_relaxed);  // T3
    return true;
}

bool task_table::set_deadline(std::uint64_t id, tick deadline, bool sooner) noexcept {
    shard& s = shard_of(id);
    const std::lock_guard held(s.lock);
    slot* const place = slot_of(s, id);
    if (place == nullptr) return false;
    const slot_deadline& present = deadline_at(s, place->index);
    if (sooner && present.is_linked() && present.deadline() <= deadline) return true;
    disarm(s, *place);
    if (deadline != tick_never) arm(s, *place, deadline);
    return true;
}

tick task_table::deadline_of(std::uint64_t id) noexcept {
    shard& s = shard_of(id);
    const std::lock_guard held(s.lock);
    const slot* const place = slot_of(s, id);
    if (place == nullptr) return tick_never;
    const slot_deadline& d = deadline_at(s, place->index);
    return d.is_linked() ? d.deadline() : tick_never;
}

std::size_t task_table::take_due(tick now, managed_ref* into, std::size_t room) noexcept {
    for (;;) {
        shard* first = &shards_[0];
        tick at = first->next.load(std::memory_order_relaxed);
        for (std::size_t i = 1; i <= shard_mask_; ++i) {
            const tick other = shards_[i].next.load(std::memory_order_relaxed);
            if (other < at) {
                at = other;
                first = &shards_[i];
            }
        }
        if (at > now || at == tick_never) return 0;
        const std::lock_guard held(first->lock);
        wheel& timers = first->timers;
        std::size_t count = 0;
        // To the earliest tick and no further: another shard may have the next one.
        timers.advance(
            std::min(timers.next(), now),
            [&](wheel_node& n) noexcept {
                --first->counts.deadlines;
                into[count++] = managed_ref(*static_cast<slot_deadline&>(n).of->task);
            },
            room);
        first->next.store(timers.next(), std::memory_order_relaxed);  // T3
        if (count != 0) return count;
    }
}

tick task_table::next() const noexcept {
    tick at = tick_never;
    for (std::size_t i = 0; i <= shard_mask_; ++i)
        at = std::min(at, shards_[i].next.load(std::memory_order_relaxed));
    return at;
}

// -- all of them --------------------------------------------------------------------------------

std::vector<std::uint64_t> task_table::ids() const {
    std::vector<std::uint64_t> all;
    // Reserves without the locks, and again if that was too little.
    for (std::size_t wanted = count().living + 64;; wanted = count().living * 2) {
        all.reserve(wanted);
        for (std::size_t i = 0; i <= shard_mask_; ++i) shards_[i].lock.lock();
        std::size_t living = 0;
        for (std::size_t i = 0; i <= shard_mask_; ++i) living += shards_[i].counts.living;
        const bool fits = living <= all.capacity();
        for (std::size_t k = 0; fits && k <= shard_mask_; ++k) {
            const shard& s = shards_[k];
            for (std::uint32_t i = 0; i < s.slot_count; ++i)
                if (const slot& place = slot_at(s, i); place.task != nullptr)
                    all.push_back(id_of(s, place));
        }
        for (std::size_t i = 0; i <= shard_mask_; ++i) shards_[i].lock.unlock();
        if (fits) return all;
    }
}

// The lock is released between two steps, also where few of many slots are in use.
std::size_t task_table::take_some(const shard& s, std::uint32_t& at, managed_ref* into) noexcept {
    for (;;) {
        const std::lock_guard held(s.lock);
        const std::uint32_t end = std::min(s.slot_count, at + 16 * static_cast<unsigned>(batch));
        std::size_t count = 0;
        for (; at < end && count < batch; ++at)
            if (managed_task* const t = slot_at(s, at).task) into[count++] = managed_ref(*t);
        if (count != 0 || at == s.slot_count) return count;
    }
}

task_table::census task_table::count() const noexcept {
    census all;
    for (std::size_t k = 0; k <= shard_mask_; ++k) {
        const std::lock_guard held(shards_[k].lock);
        const census& c = shards_[k].counts;
        all.living += c.living;
        all.deadlines += c.deadlines;
        for (std::size_t i = 0; i < status_count; ++i) all.ended[i] += c.ended[i];
    }
    return all;
}

void task_table::check() const noexcept {
    for (std::size_t k = 0; k <= shard_mask_; ++k) {
        const shard& s = shards_[k];
        const std::lock_guard held(s.lock);
        s.timers.check();
        std::size_t living = 0;
        std::size_t linked = 0;
        for (std::uint32_t i = 0; i < s.slot_count; ++i) {
            const slot& place = slot_at(s, i);
            WEFT_ASSERT(place.index == i, "task_table: a slot is another's");
            WEFT_ASSERT(place.task == nullptr || place.task->key == id_of(s, place),
                        "task_table: a task has another's id");
            const bool timed = deadline_at(s, i).is_linked();
            WEFT_ASSERT(!timed || place.task != nullptr, "task_table: T2");
            living += place.task != nullptr ? 1 : 0;
            linked += timed ? 1 : 0;
        }
        WEFT_ASSERT(living == s.counts.living, "task_table: how many live");
        WEFT_ASSERT(linked == s.counts.deadlines && linked == s.timers.size(),
                    "task_table: how many have a deadline");
        WEFT_ASSERT(s.next.load(std::memory_order_relaxed) <= s.timers.next(), "task_table: T3");
    }
}

}  // namespace weft::detail
