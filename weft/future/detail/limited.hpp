// limited_block: a future with the outcome of another future (up), which is asked to stop at a
// deadline, or with a stop_token.
//
// Design: the limited future waits for `up` also after the request to stop, so that all that `up`
// holds is released when the outcome exists. If the deadline came first and `up` did stop, the
// outcome is std::errc::timed_out.
//
// Model: test/model/future_core_test.cpp
#pragma once

#include <utility>

#include "weft/base/detail/lifetime.hpp"
#include "weft/future/detail/multi_source_core.hpp"
#include "weft/future/detail/outcome.hpp"
#include "weft/stop/detail/stop_node.hpp"

namespace weft::detail {

// The untyped part. All but the word of `calls` is used only on the thread of the core's executor.
struct limited_core {
    multi_source_core calls;
    future_core* up;
    struct notified_by_up : listener {
        limited_core* owner = nullptr;
    } listen;
    struct timing : timer_node {
        limited_core* owner = nullptr;
    } timer;
    struct stopping : stop_node {
        limited_core* owner = nullptr;
        stopping() noexcept : stop_node(ask) {}
        static void ask(stop_node& n, stop_reason why) noexcept {
            request_stop(static_cast<stopping&>(n).owner->calls.core, why);
        }
    } node;
    bool late = false;

    limited_core(future_core& c, future_core& source, time_point deadline) noexcept;
    limited_core(const limited_core&) = delete;
    ~limited_core() = default;

    void begin(stop_token token) noexcept;
    // Called by a turn. True: `up` has its outcome.
    [[nodiscard]] bool look() noexcept;
    // Called when the outcome exists or is about to: disconnects token and timer, so that nothing
    // requests a turn any more.
    void cancel() noexcept;
};

template <class T>
struct limited_block {
    static constexpr std::size_t offset = aligned(outcome_end<T>, alignof(limited_core));
    static constexpr std::size_t bytes = offset + sizeof(limited_core);
    static constexpr std::size_t alignment = block_alignment<T>(alignof(limited_core));

    // Takes the reference to `up`.
    static future_core* make(future_core& up, time_point deadline, stop_token token) {
        void* const memory = block_cache::acquire(bytes, alignment);
        auto* const c = ::new (memory) future_core(*up.home, turn, dispose, 2);
        static_cast<void>(c->begin());
        auto* const in = ::new (static_cast<void*>(reinterpret_cast<std::byte*>(c) + offset))
            limited_core(*c, up, deadline);
        in->begin(token);
        return c;
    }

private:
    static limited_core& in(future_core& c) noexcept { return in_room<limited_core>(c, offset); }

    static void turn(frame* f) noexcept {
        future_core& c = future_core::of(f);
        limited_core& self = in(c);
        if (self.calls.over) {
            static_cast<void>(self.calls.take());
            return release(&c);
        }
        if (!self.look()) return;
        self.cancel();
        if (self.late && self.up->kind == outcome_kind::stopped)
            c.put_error(std::make_error_code(std::errc::timed_out));
        else
            move_outcome<T>(*self.up, c);
        self.calls.finish();
    }
    static void dispose(frame* f) noexcept {
        future_core& c = future_core::of(f);
        limited_core& self = in(c);
        if (c.references.load(std::memory_order_relaxed) == 0) {  // ordered by the last release()
            future_core* const up = self.up;
            destroy_outcome<T>(c);
            detail::destroy_at(&self);
            release_block(c, bytes, alignment);
            return release(up);
        }
        // The executor ends.
        static_cast<void>(self.calls.take());
        if (self.calls.over) return release(&c);
        static_cast<void>(self.up->word.detach());
        self.cancel();
        c.put_stopped(stop_reason::shutdown);
        self.calls.finish();
    }
};

}  // namespace weft::detail
