// continuation: a future that a function makes of another future's value; the result of then().
//
// Design: the function and its argument are stored where the outcome will be. When the turn of the
// continuation comes, both move to the stack that runs the function, and the function's result is
// built in their place.
//
//      future_core | argument | function             the value exists already
//      future_core | follow_part | function          the value comes later, and stays in its block
//
// A Way calls the function, and a Body stores the result (body.hpp).
#pragma once

#include <type_traits>
#include <utility>

#include "weft/base/detail/lifetime.hpp"
#include "weft/base/detail/min_max.hpp"
#include "weft/future/detail/body.hpp"

namespace weft::detail {

// Moves the object out and destroys the source.
template <class X>
X taken_out(X& x) {
    struct at_end {
        X& x;
        ~at_end() { detail::destroy_at(&x); }
    } const destroys{x};
    return std::move(x);
}

template <class Body>
constexpr std::size_t room_to_forward() noexcept {
    if constexpr (requires { requires is_future<typename Body::returned>; })
        return sizeof(future_core) + sizeof(follow_part);
    else
        return 0;
}

// The storage of an outcome, shared with an Inside until the outcome exists. The Inside is at an
// offset behind what is stored before it.
template <class R, class Inside>
struct room {
    std::size_t offset, bytes, alignment;

    constexpr room(std::size_t before, std::size_t least) noexcept
        : offset(aligned(sizeof(future_core) + before, alignof(Inside))),
          bytes(max_of(block_bytes<R>(offset + sizeof(Inside)), least)),
          alignment(block_alignment<R>(alignof(Inside))) {}
};

// Makes a block with a core and, in the core's storage, an Inside made of `inside`.
template <class Inside, class... Args>
future_core* make_block(std::size_t bytes, std::size_t alignment, std::size_t offset, executor& on,
                        void (*turn)(frame*), void (*dispose)(frame*), unsigned references,
                        Args&&... inside) {
    block_room place(bytes, alignment);
    auto* const c = ::new (place.at(0)) future_core(on, turn, dispose, references);
    ::new (place.at(offset)) Inside{std::forward<Args>(inside)...};
    place.keep();
    return c;
}

// The continuation of a value that exists, on the future's own executor.
template <class T, class Body, class Way>
struct ready_continuation {
    using result = typename Body::result;
    struct inside {
        [[no_unique_address]] stored_t<T> value;
        Body body;
    };
    static constexpr room<result, inside> place{0, room_to_forward<Body>()};

    // The turn of the continuation comes behind all turns that are ready.
    static future_core* make(executor& here, stored_t<T>&& v, Body&& b) {
        typename Way::ticket admits;
        future_core* const c = make_block<inside>(place.bytes, place.alignment, place.offset, here,
                                                  Way::template take_turn<ready_continuation>,
                                                  dispose, 2, std::move(v), std::move(b));
        Way::template prepare<ready_continuation>(*c, admits);
        here.defer(c->handle(), nullptr);
        return c;
    }
    // As make(), but reuses the block of `up`, which is a promise's block, has no other reference,
    // and has the value.
    static constexpr bool may_take_block =
        !WEFT_ASAN && place.alignment <= block_cache::alignment &&
        block_alignment<T>() <= block_cache::alignment &&
        detail::block_lists::index(place.bytes) == detail::block_lists::index(block_bytes<T>()) &&
        std::is_nothrow_move_constructible_v<stored_t<T>> &&
        std::is_nothrow_move_constructible_v<Body>;
    static bool can_take_block(const future_core& up) noexcept {
        return up.destroy == promise_block<T>::dispose && up.is_alone();
    }
    static future_core* make_in_block(executor& here, future_core& up, Body&& b) {
        typename Way::ticket admits;
        stored_t<T> v = taken_out(value_of<T>(up));
        auto* const c = ::new (static_cast<void*>(&up))
            future_core(here, Way::template take_turn<ready_continuation>, dispose, 2);
        ::new (static_cast<void*>(&in(*c))) inside{std::move(v), std::move(b)};
        Way::template prepare<ready_continuation>(*c, admits);
        here.defer(c->handle(), nullptr);
        return c;
    }

private:
    static inside& in(future_core& c) noexcept { return in_room<inside>(c, place.offset); }

    friend Way;
    static void turn(future_core& c) {
        if (!c.begin()) [[unlikely]]
            return discard(c, false);
        bool complete;
        {
            inside here = taken_out(in(c));
            complete = here.body(c, here.value);
        }
        if (!complete) return;
        if (c.is_alone() && c.manner == manner::plain)
            free(c);
        else
            c.finish();
    }
    static void ended(void* c) noexcept { static_cast<future_core*>(c)->finish(); }
    static void refused(future_core& c) noexcept {
        if (!c.begin()) return discard(c, false);
        detail::destroy_at(&in(c));
        put_no_memory(c);
        c.finish();
    }
    static void free(future_core& c) noexcept {
        destroy_outcome<result>(c);
        release_block(c, place.bytes, place.alignment);
    }
    static void discard(future_core& c, bool ours) noexcept {
        detail::destroy_at(&in(c));
        if (ours)
            drop(c);
        else
            release(&c);
    }
    static void dispose(frame* f) noexcept {
        future_core& c = future_core::of(f);
        if (c.references.load(std::memory_order_relaxed) == 0) {  // ordered by the last release()
            free(c);
        } else if (c.manner == manner::forwards) {
            drop_forwarding(c);
        } else {
            Way::drop(c);
            discard(c, c.begin());
        }
    }
};

// The continuation of a value that comes later, or exists on another executor. Source says how the
// value is stored in the other core, and what the function is called with.
template <class Source, class Body, class Way>
struct continuation {
    using result = typename Body::result;
    static constexpr room<result, Body> place{sizeof(follow_part), room_to_forward<Body>()};

    // Takes the reference to `up`.
    static future_core* make(executor& on, future_core& up, Body&& b) {
        typename Way::ticket admits;
        future_core* const c =
            make_block<Body>(place.bytes, place.alignment, place.offset, on,
                             Way::template take_turn<continuation>, dispose, 2, std::move(b));
        auto& part = *::new (static_cast<void*>(&follow_part::of(*c))) follow_part(&up);
        c->manner = Source::waiting;
        Way::template prepare<continuation>(*c, admits);
        Source::follow(part);
        return c;
    }

private:
    static Body& in(future_core& c) noexcept { return in_room<Body>(c, place.offset); }
    // After begin().
    static future_core& take_up(future_core& c) noexcept {
        c.manner = manner::plain;
        return *follow_part::of(c).up;
    }

    friend Way;
    static void turn(future_core& c) {
        if (!c.begin()) return discard(c, false);
        if (!Body::takes_failure && !follow_part::of(c).up->has_value()) {
            detail::destroy_at(&in(c));
            future_core& up = take_up(c);
            Source::pass_failure(up, c);
            release(&up);
            return c.finish();
        }
        bool complete;
        {
            const typename Source::argument from(take_up(c));  // releases up
            Body here = taken_out(in(c));
            complete = from.call(here, c);
        }
        if (complete) c.finish();
    }
    static void ended(void* c) noexcept { static_cast<future_core*>(c)->finish(); }
    static void refused(future_core& c) noexcept {
        if (!c.begin()) return discard(c, false);
        detail::destroy_at(&in(c));
        future_core& up = take_up(c);
        put_no_memory(c);
        release(&up);
        c.finish();
    }
    static void discard(future_core& c, bool ours) noexcept {
        detail::destroy_at(&in(c));
        if (!ours) return release(&c);  // K3: release() releases up too
        future_core& up = take_up(c);
        drop(c);
        release(&up);
    }
    static void dispose(frame* f) noexcept {
        future_core& c = future_core::of(f);
        if (c.references.load(std::memory_order_relaxed) == 0) {  // ordered by the last release()
            destroy_outcome<result>(c);
            release_block(c, place.bytes, place.alignment);
        } else if (c.manner == manner::forwards) {
            drop_forwarding(c);
        } else {
            Way::drop(c);
            discard(c, c.begin());
        }
    }
};

// The value, or the future itself, of a future that has one owner.
struct source_of_one {
    static constexpr manner waiting = manner::follows;
    static void follow(follow_part& p) noexcept { p.follow(p.up->word); }
    static void pass_failure(future_core& from, future_core& to) noexcept {
        to.take_failure_of(from);
    }
};
template <class T>
struct value_source : source_of_one {
    class argument {
    public:
        explicit argument(future_core& up) noexcept : up_(up) {}
        argument(const argument&) = delete;
        ~argument() { release(&up_); }
        template <class Body>
        bool call(Body& body, future_core& c) const {
            return body(c, value_of<T>(up_));
        }

    private:
        future_core& up_;
    };
};
template <class Future>
struct future_source : source_of_one {
    class argument {
    public:
        explicit argument(future_core& up) noexcept : up_(up) {}
        argument(const argument&) = delete;
        template <class Body>
        bool call(Body& body, future_core& c) const {
            return body(c, Future(&up_));
        }

    private:
        future_core& up_;
    };
};

}  // namespace weft::detail
