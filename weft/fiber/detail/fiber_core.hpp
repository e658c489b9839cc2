// fiber_core: the state of a fiber besides its coroutine: the flow, the joiners, the outcome.
//
//      fiber_core (block_cache)                          coroutine (its own block and stack)
//      +-----------------------------------+            +--------------------------------+
//      | resume | destroy |  flow: hot ---------------->| context, state                 |
//      | references | joiners | outcome    |            | the user's function            |
//      +-----------------------------------+            +--------------------------------+
//
// Its first two words are those of a coroutine frame, so that a run queue resumes it as it resumes
// a C++20 coroutine. The handle and each message in transit have a reference. The run needs none of
// its own: a fiber object does not release its reference before the end, or passes it to the run
// by detach(). The run has its own if the handle is not a fiber object (`kept`).
//
// Invariants:
// F1  the joiners' queue ends once, after all the rest of the outcome was written; from then on the
//     run accesses nothing here, unless it has the last reference
// F2  it is registered with its executor from its first turn to its end, except while it migrates
// F3  its executor exists until it has ended; `home` is null until the executor is known: before
//     the start of a deferred fiber, in a pool before the first turn, and while it migrates
//
// Model: test/model/fiber_core_test.cpp
#pragma once

#include <atomic>
#include <exception>
#include <string_view>

#include "weft/base/detail/owned.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/wait/detail/end_queue.hpp"
#include "weft/wait/detail/scope.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

struct fiber_locals;

struct fiber_core : frame, flow {
    // How the last turn ended: in after_turn, until the next one starts.
    enum after : std::uint8_t { suspended, yielded };

    // In this order, which leaves no gap after the flow.
    bool registered = false;
    bool kept = false;  // the run has a reference of its own: written before it starts
    bool detached =
        false;  // by a fiber object, whose reference the run has: under the joiners' lock
    stop_reason stopped_by = stop_reason::none;
    // Not written after it has started.
    bool started : 1 = false;
    bool lent : 1 = false;      // it is a borrowed_fiber
    bool watched : 1 = false;   // it is a watched_fiber
    bool is_child : 1 = false;  // of a scope
    atomic<unsigned> references{1};
    [[no_unique_address]] end_queue joiners;  // F1
    // For weft/hook: whether its libc calls are hooked, by default or explicitly; the answer of a
    // wait that a stop refuses (0: the process's); whether cancellation is disabled, and of which
    // type it is; whether it can be canceled (it has a record); how many waits it refused in a row;
    // and how many pthread mutexes it owns. They are stored after the queue's lock.
    enum class hooks : std::uint8_t { by_default, on, off };
    hooks hooked : 2 = hooks::by_default;
    std::uint8_t stop_answer : 3 = 0;
    bool cancel_disabled : 1 = false;
    bool cancel_asynchronous : 1 = false;
    bool has_cancel_record : 1 = false;
    std::uint8_t refused_waits = 0;
    std::uint16_t foreign_locks = 0;
    // Whether hooked code would find it as if it were new.
    bool has_default_settings() const noexcept {
        return hooked == hooks::by_default && stop_answer == 0 && !cancel_disabled &&
               !cancel_asynchronous && !has_cancel_record && refused_waits == 0 &&
               foreign_locks == 0;
    }
    union {
        scheduler* target = nullptr;  // where it starts; until begin()
        fiber_locals* locals;
    };
    union {
        std::exception_ptr own_error{};  // the exception that left its function
        owned<scope_member> member;      // is_child: has the error
    };

    fiber_core() noexcept;
    ~fiber_core();

    static fiber_core& of(flow& f) noexcept { return static_cast<fiber_core&>(f); }
    static fiber_core* current() noexcept {
        flow* f = current_flow();
        return f != nullptr && f->kind == &fiber_kind ? &of(*f) : nullptr;
    }
    static const flow_kind fiber_kind;

    bool has_ended() const noexcept { return joiners.has_ended(); }  // F1
    // Relaxed: the caller owns a reference already.
    void keep() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept;

    // The fiber owns its coroutine, which its turns load first.
    template <class Body>
    void set_body(Body&& body, const coroutine_options& options = {}) {
        hot = make<void()>(std::forward<Body>(body), options);
    }
    void drop_body() noexcept;  // only before the start, or after the end
    control* own() const noexcept { return static_cast<control*>(const_cast<void*>(hot)); }
    bool runs_here() const noexcept { return detail::current() == own(); }

    std::uint64_t id() const noexcept { return own()->id.get(); }
    std::string_view name() const noexcept {
        const char* n = own()->info().name;
        return n != nullptr ? std::string_view(n) : std::string_view();
    }
    std::exception_ptr& error() noexcept { return is_child ? member->error : own_error; }
    // Before its start.
    void become_child(owned<scope_member> m) noexcept;

    // Precondition: its target is set, and exists.
    void begin(bool at_once);
    // As a flow's, but it may have ended already. Any thread that has a reference.
    bool request_stop(stop_reason reason) noexcept;
    void run();  // one turn, and those that were passed on by pass_turn() until one comes back
    // The running fiber is about to suspend: if the next turn is a fiber's too, that fiber's
    // coroutine, to be continued instead of this one. Else null.
    control* pass_turn() noexcept;
    void finish() noexcept;  // the last step on its executor's thread
    void detach() noexcept;  // by a fiber object that will not join; it has started
    void set_name(std::string_view name);

    static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes);
    }

private:
    void end_by_exception();
    void end_turn() noexcept;
};

static_assert(WEFT_MODEL || sizeof(fiber_core) <= 4 * cache_line_bytes);

// A borrowed fiber, which runs one continuation after another (weft/future): the running one, the
// function that notifies it when the fiber is done, and the next one.
struct borrowed_fiber final : fiber_core {
    void* guest = nullptr;
    void (*tell_guest)(void*) noexcept = nullptr;
    const void* next = nullptr;

    borrowed_fiber() noexcept { lent = true; }
};

// A fiber whose end calls on_end (weft/manager), as its last step, on its executor's thread. Unless
// it is `kept`, the object of on_end has all references and nothing joins the fiber, so that its
// run needs no reference.
struct watched_fiber : fiber_core {
    void (*const on_end)(void*) noexcept;
    void* const on_end_of;
    void (*const destroy)(watched_fiber&) noexcept;  // destroys the derived object

    watched_fiber(void (*e)(void*) noexcept, void* of, void (*d)(watched_fiber&) noexcept) noexcept
        : on_end(e), on_end_of(of), destroy(d) {
        watched = true;
    }
    static watched_fiber* of(flow& f) noexcept {
        if (f.kind != &fiber_kind || !fiber_core::of(f).watched) return nullptr;
        return static_cast<watched_fiber*>(&fiber_core::of(f));
    }
};

void destroy_locals(fiber_core& c) noexcept;

// Waits for the end of a fiber.
class fiber_end_operation {
public:
    static constexpr bool reports_stop = false;

    explicit fiber_end_operation(fiber_core& f) noexcept : fiber_(&f) {}
    // Only before the operation is awaited.
    fiber_end_operation(fiber_end_operation&& other) noexcept : fiber_(other.fiber_) {}
    bool ready() const noexcept;
    bool start(waiter& w) noexcept;
    void take(const waiter* w, wait_status how) const;

private:
    fiber_core* fiber_;
    wait_node node_;
};

}  // namespace weft::detail
