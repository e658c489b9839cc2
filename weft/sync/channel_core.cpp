#include "weft/sync/detail/channel_core.hpp"

#include <mutex>
#include <system_error>

#include "weft/base/assert.hpp"
#include "weft/base/errc.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::detail {
namespace {

[[noreturn]] void throw_bad_alloc() {
#if WEFT_EXCEPTIONS
    throw std::bad_alloc();
#else
    fail("a channel for more than memory can hold");
#endif
}

std::byte* make_room(const item_type& type, std::size_t capacity) {
    if (capacity == 0) return nullptr;
    if (capacity > PTRDIFF_MAX / type.bytes) throw_bad_alloc();
    return static_cast<std::byte*>(
        ::operator new(capacity * type.bytes, std::align_val_t(type.alignment)));
}

void free_room(const item_type& type, std::byte* room) noexcept {
    ::operator delete(room, std::align_val_t(type.alignment));
}

}  // namespace

channel_core::channel_core(const item_type& type, std::size_t capacity)
    : own_room_(true),
      has_ring_(capacity != 0),
      type_(type),
      capacity_(capacity),
      room_(make_room(type, capacity)) {
    lock();
    unlock();
}

channel_core::channel_core(const item_type& type, std::size_t capacity, void* room)
    : own_room_(false),
      has_ring_(capacity != 0),
      type_(type),
      capacity_(capacity),
      room_(static_cast<std::byte*>(room)) {
    lock();
    unlock();
}

channel_core::~channel_core() {
    WEFT_ASSERT_AT(receivers_.empty() && senders_.empty() && watchers_.empty(),
                   "a channel is destroyed while it has waiters", unknown_caller);
    for (; count_ != 0; --count_, ++first_) type_.destroy(at(first_));
    if (own_room_) free_room(type_, room_);
}

// The hints are stored before the lock is released, so that they are right for the next agent that
// takes the lock.
void channel_core::unlock() noexcept {
    const unsigned recv = (count_ != 0) | !senders_.empty();
    const unsigned send = (count_ < capacity_) | !receivers_.empty();
    unsigned hints = recv | send << 1;
    if (closed_) [[unlikely]]
        hints = 3 | static_cast<unsigned>(is_over()) << 2 | closed_hint;
    hints_.store(hints, std::memory_order_relaxed);  // see hints()
    lock_.unlock();
}

std::size_t channel_core::count() const noexcept {
    auto& self = const_cast<channel_core&>(*this);
    const std::lock_guard held(self.lock_);
    return count_;
}

// -- under the lock ---------------------------------------------------------------------------

void channel_core::put(void* from) noexcept {
    type_.move(at(first_ + count_), from);
    ++count_;
}

void channel_core::get(void* to) noexcept {
    type_.move(to, at(first_));
    type_.destroy(at(first_));
    if (++first_ == capacity_) first_ = 0;
    --count_;
}

WEFT_ALWAYS_INLINE channel_node* channel_core::claim_first(wait_list& line) noexcept {
    while (auto* n = static_cast<channel_node*>(line.pop_front()))
        // A select is queued elsewhere too.
        if (n->hopes == nullptr ? n->owner->claim_alone() : n->owner->claim()) return n;
    return nullptr;
}

WEFT_ALWAYS_INLINE channel_node* channel_core::hand_over(void* from) noexcept {
    channel_node* const receiver = claim_first(receivers_);
    if (receiver == nullptr) return nullptr;
    type_.move(receiver->slot, from);  // C1: no item is before this one
    receiver->outcome = transfer::done;
    return receiver;
}

transfer channel_core::send(void* from, wait_list& woken) noexcept {
    if (closed_) return transfer::closed;
    if (channel_node* receiver = hand_over(from)) {
        woken.push_back(*receiver);
        return transfer::done;
    }
    if (count_ == capacity_) return transfer::none;
    put(from);
    return transfer::done;
}

WEFT_ALWAYS_INLINE channel_node* channel_core::take_over(void* to) noexcept {
    channel_node* const sender = claim_first(senders_);
    if (sender == nullptr) return nullptr;
    type_.move(to, sender->slot);
    sender->outcome = transfer::done;
    return sender;
}

transfer channel_core::recv(void* to, wait_list& woken) noexcept {
    if (count_ == 0) {
        channel_node* const sender = take_over(to);
        if (sender == nullptr) return closed_ ? transfer::closed : transfer::none;
        woken.push_back(*sender);
        return transfer::done;
    }
    get(to);
    if (channel_node* sender = claim_first(senders_)) {
        put(sender->slot);  // C2: a slot is free again
        sender->outcome = transfer::done;
        woken.push_back(*sender);
    } else if (is_over()) {
        tell_watchers(woken);  // C4
    }
    return transfer::done;
}

transfer channel_core::attempt(channel_node& n, wait_list& woken) noexcept {
    switch (n.what) {
        case channel_node::wish::recv:
            n.outcome = recv(n.slot, woken);
            break;
        case channel_node::wish::send:
            n.outcome = send(n.slot, woken);
            break;
        case channel_node::wish::end:
            n.outcome = is_over() ? transfer::done : transfer::none;
            break;
    }
    return n.outcome;
}

wait_list& channel_core::line_of(channel_node::wish w) noexcept {
    if (w == channel_node::wish::recv) return receivers_;
    return w == channel_node::wish::send ? senders_ : watchers_;
}

void channel_core::enlist(channel_node& n, waiter& w) noexcept {
    n.owner = &w;
    line_of(n.what).push_back(n);
}

// The queued requests can no longer succeed. A select may still have another case that can.
void channel_core::give_up(wait_list& line, wait_list& woken) noexcept {
    while (auto* n = static_cast<channel_node*>(line.pop_front())) {
        // Relaxed: a count. The agent that removes the last hope ends the wait, and its wake orders
        // the outcome.
        if (n->hopes != nullptr && n->hopes->fetch_sub(1, std::memory_order_relaxed) != 1) continue;
        if (!n->owner->claim()) continue;
        n->outcome = transfer::closed;
        woken.push_back(*n);
    }
}

void channel_core::tell_watchers(wait_list& woken) noexcept {
    while (channel_node* n = claim_first(watchers_)) {
        n->outcome = transfer::done;
        woken.push_back(*n);
    }
}

void channel_core::end(wait_list& woken) noexcept {
    closed_ = true;
    if (count_ == 0) tell_watchers(woken);  // C4; before a select is found to have no hope left
    give_up(receivers_, woken);             // C3
    give_up(senders_, woken);
}

// -- without the lock -------------------------------------------------------------------------

transfer channel_core::try_send(void* from) noexcept {
    lock();
    if (channel_node* receiver = hand_over(from)) {  // C3: the channel is not closed
        unlock();
        receiver->owner->wake();
        return transfer::done;
    }
    wait_list woken;
    const transfer t = send(from, woken);
    unlock();
    wait_queue::wake_all(woken);
    return t;
}

transfer channel_core::try_recv(void* to) noexcept {
    lock();
    if (channel_node* sender = count_ == 0 ? take_over(to) : nullptr) {
        unlock();
        sender->owner->wake();
        return transfer::done;
    }
    wait_list woken;
    const transfer t = recv(to, woken);
    unlock();
    wait_queue::wake_all(woken);
    return t;
}

transfer channel_core::send_last(void* from) noexcept {
    wait_list woken;
    lock();
    const transfer t = send(from, woken);
    if (t == transfer::done) end(woken);
    unlock();
    wait_queue::wake_all(woken);
    return t;
}

bool channel_core::close() noexcept {
    wait_list woken;
    lock();
    const bool first = !closed_;
    if (first) end(woken);
    unlock();
    wait_queue::wake_all(woken);
    return first;
}

void channel_core::grow() {
    lock();
    const std::size_t before = capacity_;
    unlock();
    const std::size_t capacity = 2 * before;
    std::byte* room = make_room(type_, capacity);
    lock();
    const bool still = capacity_ == before && count_ == before;
    if (still) {
        for (std::size_t i = 0; i < count_; ++i) {
            void* old = at(first_ + i);
            type_.move(room + i * type_.bytes, old);
            type_.destroy(old);
        }
        std::swap(room, room_);
        first_ = 0;
        capacity_ = capacity;
    }
    unlock();
    free_room(type_, room);
}

bool channel_core::start(channel_node& n, waiter& w) noexcept {
    wait_list woken;
    lock();
    const bool waits = attempt(n, woken) == transfer::none;
    if (waits) {
        w.enlist(n.what == channel_node::wish::send ? "room in a channel" : "a channel's item",
                 this, &n, [](waiter& me) noexcept {
                     auto& self = me.operation<channel_node>();
                     self.channel->cancel(self);
                 });
        enlist(n, w);
    }
    unlock();
    wait_queue::wake_all(woken);
    return waits;
}

void channel_core::cancel(channel_node& n) noexcept {
    lock();
    remove(n);
    unlock();
}

bool channel_wait::try_now() noexcept {
    if (!node_.channel->may(node_.what)) return false;
    node_.outcome = node_.what == channel_node::wish::send ? node_.channel->try_send(node_.slot)
                                                           : node_.channel->try_recv(node_.slot);
    return node_.outcome != transfer::none;
}

std::error_code channel_wait::error(wait_status how) noexcept {
    if (how == wait_status::woken) return errc::closed;
    return std::make_error_code(how == wait_status::timed_out ? std::errc::timed_out
                                                              : std::errc::operation_canceled);
}

}  // namespace weft::detail
