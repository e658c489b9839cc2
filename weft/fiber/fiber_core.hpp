// fiber_core: what there is of a fiber besides its coroutine: the flow, who joins it, how it ended.
//
//      fiber_core (block_cache)                          coroutine (its own block and stack)
//      +-----------------------------------+            +--------------------------------+
//      | resume | destroy |  flow: hot ---------------->| context, state                 |
//      | references | joiners | outcome    |            | the user's function            |
//      +-----------------------------------+            +--------------------------------+
//
// It begins with the two words of a coroutine frame, so that a run queue resumes it as it resumes a
// C++20 coroutine. References are held by the handle and by each message on its way. The run needs
// none of its own: a handle does not let go of it before the end, or hands it over to the run by
// abandon(). It has one where the handle is another's than a fiber object's (`kept`).
//
// Invariants:
// F1  the joiners' queue ends once, after everything else of the outcome was written; from then on
//     the run touches nothing here, unless the last reference that there may be is its own
// F2  it is enrolled with its executor from its first turn to its end, except on the way to another
// F3  its executor is there until it has ended; `home` is null until it is known: for a lazy one
//     before it is started, in a pool before its first turn, and on the way to another
//
// Model: test/model/fiber_core_test.cpp
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>

#include "weft/coroutine/coroutine.hpp"
#include "weft/wait/end_queue.hpp"
#include "weft/wait/flow.hpp"
#include "weft/wait/scope.hpp"

namespace weft::detail {

struct fiber_locals;

struct fiber_core : frame, flow {
    // What a turn that has ended leaves in after_turn.
    enum after : std::uint8_t { suspended, yielded };

    // In this order, which leaves no gap behind the flow.
    bool enrolled = false;
    bool kept = false;  // its run has a reference: written before it begins
    bool detached =
        false;  // by a fiber object, whose reference the run has: under the joiners' lock
    stop_reason stopped_by = stop_reason::none;
    // Not written any more when it runs.
    bool started : 1 = false;
    bool lent : 1 = false;      // it is a lent_fiber
    bool watched : 1 = false;   // it is a watched_fiber
    bool is_child : 1 = false;  // of a scope
    atomic<unsigned> references{1};
    [[no_unique_address]] end_queue joiners;  // F1
    // For weft/hook: whether its calls of libc are hooked, by default or said so, what a wait there
    // says that a stop refuses (0: as the process has it), whether it is not to be canceled, and by
    // which type, whether it could be (it has a record), how many waits it refused in a row, and
    // how many mutexes of pthreads it holds. These lie behind the queue's lock.
    enum class hooks : std::uint8_t { by_default, on, off };
    hooks hooked : 2 = hooks::by_default;
    std::uint8_t stop_answer : 3 = 0;
    bool cancel_disabled : 1 = false;
    bool cancel_asynchronous : 1 = false;
    bool has_cancel_record : 1 = false;
    std::uint8_t refused_waits = 0;
    std::uint16_t foreign_locks = 0;
    union {
        launcher* target = nullptr;  // where it begins; until begin()
        fiber_locals* locals;
    };
    union {
        std::exception_ptr own_error{};        // what left its function
        std::unique_ptr<scope_member> member;  // is_child: has that
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
    void keep() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept;

    // Its coroutine, which it owns, is what its turns load first.
    template <class Body>
    void set_body(Body&& body, const coroutine_options& options = {}) {
        hot = make<void()>(std::forward<Body>(body), options);
    }
    void drop_body() noexcept;  // never begun, or ended
    control* own() const noexcept { return static_cast<control*>(const_cast<void*>(hot)); }
    bool runs_here() const noexcept { return detail::current() == own(); }

    std::uint64_t id() const noexcept { return own()->id.get(); }
    std::string_view name() const noexcept {
        const char* n = own()->who().name;
        return n != nullptr ? std::string_view(n) : std::string_view();
    }
    std::exception_ptr& error() noexcept { return is_child ? member->error : own_error; }
    // Before it is begun.
    void become_child(std::unique_ptr<scope_member> m) noexcept;

    // Its target is named, and is there.
    void begin(bool at_once);
    // As a flow's, also for who does not know whether it has ended. Any thread that has a
    // reference.
    bool request_stop(stop_reason reason) noexcept;
    void run();               // one turn
    void finish() noexcept;   // the last thing on its executor's thread
    void abandon() noexcept;  // by a fiber object that will not join; it has begun
    void set_name(std::string_view name);

    static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes);
    }
};

static_assert(WEFT_MODEL || sizeof(fiber_core) <= 4 * cache_line_bytes);

// One that runs one thing after the other (weft/future): what it runs now, how that is told that
// the fiber is over, and what is next.
struct lent_fiber final : fiber_core {
    void* guest = nullptr;
    void (*tell_guest)(void*) noexcept = nullptr;
    const void* next = nullptr;

    lent_fiber() noexcept { lent = true; }
};

// One whose end is told (weft/manager): as the last thing, on its executor's thread. Unless it is
// `kept`, all references are the told one's and nothing joins it, so that its run needs none.
struct watched_fiber : fiber_core {
    void (*const on_end)(void*) noexcept;
    void* const on_end_of;
    void (*const destroy)(watched_fiber&) noexcept;  // of what derives from it

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

// What a fiber runs: the user's function, and at its end, be it a kill, the fiber's locals go, on
// its own stack.
template <class F>
struct fiber_body {
    fiber_core* core;
    F function;

    void operator()() {
        struct at_end {
            fiber_core& c;
            ~at_end() {
                if (c.locals != nullptr) destroy_locals(c);
            }
        } const at{*core};
        std::invoke(std::move(function));
    }
};

// What waits for the end of a fiber.
class join_operation {
public:
    static constexpr bool reports_stop = false;

    explicit join_operation(fiber_core& f) noexcept : fiber_(&f) {}
    // Before it is awaited.
    join_operation(join_operation&& other) noexcept : fiber_(other.fiber_) {}
    bool ready() const noexcept;
    bool start(waiter& w) noexcept;
    void take(const waiter* w, wait_status how) const;

private:
    fiber_core* fiber_;
    wait_node node_;
};

}  // namespace weft::detail
