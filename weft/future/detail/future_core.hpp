// future_core: the untyped block that a future, its promise and its continuation share.
//
// Design: one block holds the outcome and, until the outcome exists, what will make it: the
// function that was given to then(), with its argument. A future therefore costs one allocation,
// and a small future one cache line:
//
//      0  +----------------------------+
//         | resume | destroy           |  its turn; run by the executor like a coroutine
//         | home   | word | target     |  executor; claims and listener; target of a stop
//         | references, kind, stops    |
//     48  +----------------------------+  a continuation                        an outcome
//         |                            |  follow_part, argument, function   or  failure, or T
//         +----------------------------+
//
// References are held by each handle, by the producer of the outcome, and by the future that
// follows.
//
// Invariants:
// K1  the agent that has claimed a core writes the kind and the outcome, and publishes; no other
//     agent writes them
// K2  the contents of the storage belong to the turn until the kind is an outcome's; a stop that
//     claims the core writes only the reason, so that the turn finds its function and destroys it
//     on the core's executor
// K3  a core that follows another holds that one (up) until its own turn has claimed the core, or
//     until the core is destroyed: any other agent that has claimed the core finds `up` there
// K4  the target exists while the stop word is open; a core that may be asked to stop is `begun`
// K5  the agent that publishes touches nothing afterwards, or holds a reference that only this
//     agent releases
//
// Model: test/model/future_core_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <system_error>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/future/detail/future_state.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

enum class outcome_kind : std::uint8_t {
    none,       // the turn has not begun
    begun,      // the turn has claimed the core
    value,      // value and all after it are outcomes
    exception,  // of the function that was called
    error,      // a std::error_code
    stopped,    // with a reason
};

// What a core is doing, for the code that asks it to stop.
enum class manner : std::uint8_t {
    plain,       // nothing that could be asked to stop
    follows,     // has a follow_part: waits for another core
    shares,      // has a follow_part: waits for a core whose outcome others take too
    in_fiber,    // target: the flow that runs it
    forwards,    // target: the core whose outcome will be its own
    is_prompted  // target: its prompted
};

struct future_core;
void release_slowly(future_core& c) noexcept;
inline void release(future_core* c) noexcept {
    if (c != nullptr) release_slowly(*c);
}

// The storage of a failure: an exception, or a code such as errc::broken_promise.
union failure_room {
    std::exception_ptr exception;
    std::error_code error;
    failure_room() noexcept {}
    ~failure_room() {}
};

// Aligned as the listener is that may begin right behind it.
struct alignas(listener) future_core : frame {
    executor* const home;
    future_word word;
    void* target = nullptr;
    atomic<unsigned> references;
    outcome_kind kind = outcome_kind::none;
    detail::manner manner = manner::plain;
    stop_word stops;
    stop_reason reason = stop_reason::none;

    future_core(executor& on, void (*turn)(frame*), void (*dispose)(frame*), unsigned refs) noexcept
        : frame{turn, dispose}, home(&on), references(refs) {}
    future_core(const future_core&) = delete;
    future_core& operator=(const future_core&) = delete;

    static future_core& of(frame* f) noexcept { return *static_cast<future_core*>(f); }

    // Relaxed: the caller owns a reference already.
    void keep() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    // Acquire: pairs with release().
    bool is_alone() const noexcept { return references.load(std::memory_order_acquire) == 1; }
    bool has_value() const noexcept { return kind == outcome_kind::value; }
    bool has_outcome() const noexcept { return kind > outcome_kind::begun; }

    // Called by the turn. False: a stop has claimed the core first, and the turn only destroys what
    // is stored.
    [[nodiscard]] bool begin() noexcept {
        if (!(is_alone() ? word.claim_alone() : word.claim())) return false;
        kind = outcome_kind::begun;
        return true;
    }
    // Called when the outcome is stored: publishes it to the listener, and releases the reference.
    void finish() noexcept {
        if (manner != manner::plain) shut();
        if (!is_alone()) publish();
        release(this);
    }
    // Publishes for a caller that keeps a reference of its own until publish() returns.
    void publish() noexcept {
        if (listener* l = word.publish()) {
            l->notify(*l);
            word.set_notified();
        }
    }
    // Publishes for a caller that uses another agent's reference, as set_value() uses the
    // promise's: the listener may release that reference, and the future's too. K5
    void publish_held() noexcept {
        if (word.publish_to_nobody()) return;
        keep();
        publish();
        release(this);
    }

    // These functions use the empty storage; finish() or publish() comes next.
    failure_room& room_for_failure() noexcept {
        return *std::launder(reinterpret_cast<failure_room*>(reinterpret_cast<std::byte*>(this) +
                                                             sizeof(future_core)));
    }
    void put_exception(std::exception_ptr e) noexcept {
        kind = outcome_kind::exception;
        ::new (&room_for_failure().exception) std::exception_ptr(std::move(e));
    }
    void put_error(std::error_code e) noexcept {
        kind = outcome_kind::error;
        ::new (&room_for_failure().error) std::error_code(e);
    }
    void put_stopped(stop_reason why) noexcept {
        kind = outcome_kind::stopped;
        reason = why;
    }
    // Move or copy the failure of `other`, which has no value.
    void take_failure_of(future_core& other) noexcept;
    void copy_failure_of(future_core& other) noexcept;
    void destroy_failure() noexcept {
        if (kind == outcome_kind::exception) room_for_failure().exception.~exception_ptr();
    }

    // Throws the failure, or aborts if exceptions are off. Precondition: the outcome is no value.
    [[noreturn]] void throw_failure();
    // The failure as a code; throws an exception that has no code.
    std::error_code failure_code();

    // Posts the next turn, behind all that is ready on the core's executor. Any thread.
    void post(runnable& node) noexcept {
        if (current_executor() == home) {
            home->defer(handle(), nullptr);
        } else {
            node.handle = handle();
            home->post_in_order(node);
        }
    }

private:
    void shut() noexcept;
};
static_assert(WEFT_MODEL || sizeof(void*) != 8 || sizeof(future_core) == 48);

// Destroys a core without references, and releases its block.
inline void release_block(future_core& c, std::size_t bytes, std::size_t alignment) noexcept {
    detail::destroy_at(&c);
    block_cache::release(&c, bytes, alignment);
}

// Memory for a core and what is stored with it; released if a constructor throws.
class block_room {
public:
    block_room(std::size_t bytes, std::size_t alignment)
        : memory_(block_cache::acquire(bytes, alignment)), bytes_(bytes), alignment_(alignment) {}
    block_room(const block_room&) = delete;
    ~block_room() {
        if (memory_ != nullptr) block_cache::release(memory_, bytes_, alignment_);
    }
    void* at(std::size_t offset) const noexcept {
        return static_cast<std::byte*>(memory_) + offset;
    }
    void keep() noexcept { memory_ = nullptr; }

private:
    void* memory_;
    const std::size_t bytes_, alignment_;
};

// Called by a future. If the turn of the core is still to come, on this executor, the future shares
// the core with that turn alone. No other agent can get a reference, so the count needs no atomic
// read-modify-write.
inline void release_handle(future_core* c) noexcept {
    if (c == nullptr) return;
    // Acquire: pairs with the release of a third reference, for the turn, which runs after this on
    // the same executor. Relaxed: that turn is the only reader.
    if (current_executor() == c->home && c->references.load(std::memory_order_acquire) == 2 &&
        c->resume != nullptr && c->kind == outcome_kind::none && c->manner == manner::plain)
        c->references.store(1, std::memory_order_relaxed);
    else
        release_slowly(*c);
}

// The part of a core that waits for another core, at the beginning of the storage.
struct follow_part : listener, runnable {
    future_core* up;

    explicit follow_part(future_core* source) noexcept : listener{tell}, up(source) {}
    static follow_part& of(future_core& c) noexcept {
        return *std::launder(
            reinterpret_cast<follow_part*>(reinterpret_cast<std::byte*>(&c) + sizeof(future_core)));
    }
    // Makes the turn of the core come when `source` is done, or at once if it is done already.
    void follow(future_word& source) noexcept {
        if (!source.attach(*this)) post_turn();
    }
    void post_turn() noexcept {
        auto* const self = reinterpret_cast<std::byte*>(this) - sizeof(future_core);
        std::launder(reinterpret_cast<future_core*>(self))->post(*this);
    }

private:
    static void tell(listener& l) noexcept { static_cast<follow_part&>(l).post_turn(); }
};
static_assert(sizeof(future_core) % alignof(follow_part) == 0);

// Asks a core to stop. A core that has not begun is stopped at once, and the request goes on to the
// core that it follows, unless that core is shared. For a core that has begun, the request goes to
// its target. False: the core has an outcome, or was asked before. Any thread; the caller's
// reference may be released by another agent as soon as the outcome is visible.
bool request_stop(future_core& c, stop_reason why) noexcept;

// Makes inner's outcome the outcome of c, and forwards a stop of c to inner. c's block has room for
// a follow_part. Called by c's turn; `turn` runs when inner has an outcome, and ends with
// end_forwarding(), which returns inner.
void forward(future_core& c, future_core& inner, void (*turn)(frame*)) noexcept;
future_core& end_forwarding(future_core& c) noexcept;

// Called by an executor that ends, for a core that is queued there and will not run. drop() ends a
// core that was begun and has empty storage, as if it had been stopped; drop_forwarding() ends a
// core that forwards.
void drop(future_core& c) noexcept;
void drop_forwarding(future_core& c) noexcept;

}  // namespace weft::detail
