// The part of a coroutine that a fiber uses, in a program that switches no stacks: the function
// runs to its end in one turn, on its resumer's stack. Replaces weft/coroutine.
#include "weft/coroutine/coroutine.hpp"

#include "model/model.hpp"
#include "weft/fiber/detail/fiber_core.hpp"

namespace weft::detail {
namespace {

[[noreturn]] void not_in_the_model() {
    model::fail("a coroutine is asked for something that the model does not have");
}

// The state at the end, also when an exception leaves the function.
struct runs_to_its_end {
    control& c;
    explicit runs_to_its_end(control& of) : c(of) { c.word.set(coroutine_state::running); }
    ~runs_to_its_end() { c.word.set(coroutine_state::done); }
};

}  // namespace

const decltype(default_sources) default_sources{};  // no function has a stack

exception_state unprepared{&unprepared, 0};  // so that each resume comes to the rare one

control* resume_rarely(control* c, on_top*, std::source_location) {
    model::require(c->word.state() == coroutine_state::ready, "a function runs once");
    const runs_to_its_end until_then(*c);
    c->verbs->entry.enter(c, c, nullptr);
    return c;
}

thread_block* enter(control&, thread_block&, nesting&) { return nullptr; }
control* come_back(const nesting&, void*, thread_block&) { not_in_the_model(); }
[[noreturn]] void fail_empty(std::source_location) { not_in_the_model(); }

bool kill(control* c, std::source_location) {
    if (c->word.state() != coroutine_state::ready) return false;
    c->verbs->destroy_body(c);
    c->word.set(coroutine_state::killed);
    return true;
}
void destroy_slowly(control* c) { kill(c, std::source_location::current()); }

std::uint64_t own_id::give() const noexcept { return 1; }
agent_info control::info() const noexcept { return {"coroutine", id.get(), nullptr}; }

void yield_rarely(thread_block&, std::source_location) { not_in_the_model(); }
void escaped_from_body(context*) noexcept { not_in_the_model(); }
void left_body(context*) noexcept { not_in_the_model(); }
void suspend_outer(control&) { not_in_the_model(); }
void adopt_options(control&, const coroutine_options&) { not_in_the_model(); }
void set_name(control&, std::string_view) { not_in_the_model(); }
void give_up_seat(control&) noexcept { not_in_the_model(); }
std::size_t high_water(const control*) noexcept { not_in_the_model(); }
control* settle(control*, void*) { not_in_the_model(); }
void run_on_top(control&, void*, context*) { not_in_the_model(); }
void run_before_body(control&, void*, context*) { not_in_the_model(); }
bool lift_exceptions(thread_block&, exception_state&) noexcept { not_in_the_model(); }
void lower_exceptions(const exception_state&) noexcept { not_in_the_model(); }
annotated_context& leave_shared(control&, thread_block&) { not_in_the_model(); }
void fail_shared_fp(const control&) { not_in_the_model(); }

void destroy_locals(fiber_core&) noexcept { not_in_the_model(); }

}  // namespace weft::detail
