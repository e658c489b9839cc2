// future_core: what a future, its promise and whatever continues it share, without its type.
//
// Its one idea: one block, which is the room for the outcome and, until there is one, what will
// make it: the function that was given to then(), with its argument. So a future costs one
// allocation, and a small one a cache line:
//
//      0  +----------------------------+
//         | resume | destroy           |  its turn; run by the executor like a coroutine
//         | home   | word | target     |  who runs it; who is told; who is asked to stop
//         | references, kind, stops    |
//     48  +----------------------------+  a continuation                        an outcome
//         |                            |  follow_part, argument, function   or  failure, or T
//         +----------------------------+
//
// References are held by each handle, by who will give the outcome, and by the future that follows.
//
// Invariants:
// K1  who has claimed it writes the kind and the outcome, and publishes; nobody else writes them
// K2  what is in the room belongs to the turn until the kind is an outcome's; a stop that claims it
//     writes the reason alone, so that the turn finds its function, to destroy it, at home
// K3  a future that follows another holds it (up) until its own turn has claimed it, or until it is
//     destroyed: whoever else has claimed it finds `up` there
// K4  the target is there while the stop word is open; and what may be asked is `begun`
// K5  what publishes touches nothing afterwards, or holds a reference that only it lets go of
//
// Model: test/model/future_core_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <system_error>

#include "weft/base/block_cache.hpp"
#include "weft/future/future_state.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

enum class outcome_kind : std::uint8_t {
    none,       // nobody has begun it
    begun,      // its turn has claimed it
    value,      // the outcomes
    exception,  // of what was called
    error,      // a std::error_code
    stopped,    // with a reason
};

// What a core is doing, for who asks it to stop.
enum class manner : std::uint8_t {
    plain,       // nothing that could be asked
    follows,     // has a follow_part: waits for another
    shares,      // the same for one whose outcome others take too
    in_fiber,    // target: the flow that runs it
    forwards,    // target: the core whose outcome will be its own
    is_prompted  // target: its prompted
};

struct future_core;
void let_go_slowly(future_core& c) noexcept;
inline void let_go(future_core* c) noexcept {
    if (c != nullptr) let_go_slowly(*c);
}

// Ends with errc::broken_promise and the like where no value is.
union failure_room {
    std::exception_ptr exception;
    std::error_code error;
    failure_room() noexcept {}
    ~failure_room() {}
};

struct future_core : frame {
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

    void keep() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    // Acquire: pairs with let_go().
    bool is_alone() const noexcept { return references.load(std::memory_order_acquire) == 1; }
    bool has_value() const noexcept { return kind == outcome_kind::value; }
    bool has_outcome() const noexcept { return kind > outcome_kind::begun; }

    // By its turn. False: a stop has come first, and all that is left is to destroy what is there.
    [[nodiscard]] bool begin() noexcept {
        if (!(is_alone() ? word.claim_alone() : word.claim())) return false;
        kind = outcome_kind::begun;
        return true;
    }
    // The outcome is in its place: shows it to who waits, and lets go.
    void finish() noexcept {
        if (manner != manner::plain) shut();
        if (!is_alone()) publish();
        let_go(this);
    }
    // The same by a caller with a reference of its own, which it keeps until this returns.
    void publish() noexcept {
        if (listener* l = word.publish()) {
            l->told(*l);
            word.set_told();
        }
    }
    // The same by a caller that uses another's reference, as set_value() does the promise's:
    // the listener may let go of that one, and of the future's too. K5
    void publish_held() noexcept {
        if (word.publish_to_nobody()) return;
        keep();
        publish();
        let_go(this);
    }

    // These take the room, which holds nothing; finish() or publish() comes next.
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
    // Of one that has no value; what it was is the other's from then on.
    void take_failure_of(future_core& other) noexcept;
    void copy_failure_of(future_core& other) noexcept;
    void destroy_failure() noexcept {
        if (kind == outcome_kind::exception) room_for_failure().exception.~exception_ptr();
    }

    // Throws it, or ends the program where exceptions are off. It has no value.
    [[noreturn]] void throw_failure();
    // The same as a code, where it can be one; what cannot is thrown.
    std::error_code failure_code();

    // Its next turn: behind all that is ready at home. Any thread.
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
static_assert(WEFT_MODEL || sizeof(future_core) == 48);

// The end of a core without references, and of its block.
inline void release_block(future_core& c, std::size_t bytes, std::size_t alignment) noexcept {
    std::destroy_at(&c);
    block_cache::release(&c, bytes, alignment);
}

// Memory for a core and what lies with it, given back where making that throws.
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

// By a future. One whose turn is still to come, here, shares it with that turn alone: nobody else
// can come to it any more, so that the count need not be changed as one.
inline void let_go_of_handle(future_core* c) noexcept {
    if (c == nullptr) return;
    if (current_executor() == c->home && c->references.load(std::memory_order_acquire) == 2 &&
        c->resume != nullptr && c->kind == outcome_kind::none && c->manner == manner::plain)
        c->references.store(1, std::memory_order_relaxed);
    else
        let_go_slowly(*c);
}

// Of a core that waits for another, at the beginning of the room.
struct follow_part : listener, runnable {
    future_core* up;

    explicit follow_part(future_core* source) noexcept : listener{tell}, up(source) {}
    static follow_part& of(future_core& c) noexcept {
        return *std::launder(
            reinterpret_cast<follow_part*>(reinterpret_cast<std::byte*>(&c) + sizeof(future_core)));
    }
    // Its turn comes, also where `source` is done already.
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

// Asks for an end: who has not begun is stopped at once, and what it waits for as well; who has is
// told. False: it has an outcome, or was asked before. Any thread; the caller's reference may go as
// soon as the outcome is seen.
bool request_stop(future_core& c, stop_reason why) noexcept;

// From here on c ends as `inner` does, which is asked to stop where c is; c's block has room for a
// follow_part. By c's turn, which runs again when inner has an outcome; at the end of that,
// end_forwarding gives inner back.
void forward(future_core& c, future_core& inner, void (*turn)(frame*)) noexcept;
future_core& end_forwarding(future_core& c) noexcept;

// By an executor that ends, of what stands in its queue and will not run: c, which was begun, and
// has nothing in its room any more, ends as if it had been stopped; the other is one that forwards.
void drop(future_core& c) noexcept;
void drop_forwarding(future_core& c) noexcept;

}  // namespace weft::detail
