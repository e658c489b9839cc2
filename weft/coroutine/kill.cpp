#include "weft/coroutine/detail/kill.hpp"

#include <memory>
#include <new>

#include "weft/base/detail/line.hpp"
#include "weft/coroutine/detail/resume.hpp"
#include "weft/unwind/detail/unwind.hpp"

namespace weft::detail {
namespace {

struct kill_request : pending_kill, unwinding {
    control* victim = nullptr;
    unsigned swallows = 0;
    bool active = true;  // cleanups are running
};

// A body that swallows its kill this often would run forever: it is reported, and the program
// aborts.
constexpr unsigned swallow_limit = 1000;

// The coroutine that unwinds runs here, or is lower in the chain of resumers. Its unwinding is a
// base of its request.
kill_request& request_of(unwinding& u) noexcept { return static_cast<kill_request&>(u); }

void finished(unwinding& u) noexcept {
    kill_request& r = request_of(u);
    thread_block& t = this_thread();
    WEFT_DEBUG_ASSERT(t.running.get() == r.victim, "T1: whose stack this is runs here");
    r.unwound = true;
    *t.exceptions = {};  // no exception of this stack is in flight any more
    leave_for_good(t);
}

void swallowed(unwinding& u) noexcept {
    kill_request& r = request_of(u);
    r.active = false;
    if (++r.swallows == swallow_limit)
        fail("kill of a coroutine whose body swallows every unwind with catch (...)",
             r.victim->info(), r.caller);
}

void refused(unwinding& u, const char* why, void* pc) noexcept {
    const kill_request& r = request_of(u);
    const char* function = function_at(pc);
    line text;
    text.text("kill of a coroutine is refused: ").text(why).text(" at ");
    if (function != nullptr)
        text.text(function);
    else
        text.hex(reinterpret_cast<std::uintptr_t>(pc));
    text.terminate();
    fail(text.data(), r.victim->info(), r.caller);
}

void run_kill(on_top& request, control&, context*) { unwind(static_cast<kill_request&>(request)); }

void unwind_again(control& c) {
    kill_request& r = static_cast<kill_request&>(*c.killing);
    if (r.active)
        fail("yield in a destructor that runs because its coroutine is killed", c.info(), r.caller);
    r.active = true;
    unwind(r);
}

void kill_suspended(control& c, kill_request& r, std::source_location caller) {
    r.run = run_kill;
    r.again = unwind_again;
    r.victim = &c;
    r.caller = caller;
    r.end = c.outermost(c.stack.top);
    r.finished = finished;
    r.swallowed = swallowed;
    r.refused = refused;
    c.killing = &r;
    c.word.raise(being_killed);
    resume_rarely(&c, &r, caller);
}

}  // namespace

bool kill(control* c, std::source_location caller) {
    if (c == nullptr) return false;
    switch (c->word.state()) {
        case coroutine_state::ready:
            c->verbs->destroy_body(c);
            c->word.set(coroutine_state::killed);
            return true;
        case coroutine_state::running:
            fail("kill of a running coroutine", c->info(), caller);
        case coroutine_state::suspended:
            break;
        default:
            return false;
    }
    const control* killer = current();
    if (killer != nullptr && killer->word.has(on_shared_stack)) {
        const std::unique_ptr<kill_request> request(new (std::nothrow) kill_request);
        if (request == nullptr)
            fail("out of memory: no room for the kill of a coroutine", c->info(), caller);
        kill_suspended(*c, *request, caller);
    } else {
        kill_request request;
        kill_suspended(*c, request, caller);
    }
    return true;
}

}  // namespace weft::detail
