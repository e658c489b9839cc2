#include "weft/coroutine/detail/life.hpp"

#include <utility>

#include "weft/coroutine/detail/extras.hpp"
#include "weft/coroutine/detail/kill.hpp"
#include "weft/coroutine/detail/shared_slot.hpp"
#include "weft/stack/growable_stack.hpp"
#include "weft/stack/high_water.hpp"

namespace weft::detail {

agent_info control::info() const noexcept {
    return {"coroutine", id.get(), extras != nullptr ? extras->name.c_str() : nullptr};
}

void adopt_options(control& c, const coroutine_options& options) {
    struct guard {
        control* made;
        ~guard() {
            if (made == nullptr) return;
            destroy_extras(*made);
            made->verbs->destroy_body(made);
            made->verbs->release(made);
        }
    } unless_adopted{&c};
    if (!options.name.empty()) set_name(c, options.name);
    if (options.shared != nullptr) take_seat(c, *options.shared);
    unless_adopted.made = nullptr;
}

void move_identity(control& from, control& to) noexcept {
    to.id.take_over(from.id);
    if (from.word.has(own_fp)) to.word.raise(own_fp);
    if (from.word.has(on_shared_stack)) to.word.raise(on_shared_stack);
    to.extras = std::exchange(from.extras, nullptr);
    if (to.word.has(on_shared_stack))
        to.seat = from.seat;
    else
        to.source = from.source;
}

std::size_t trim_stack(control* c) noexcept {
    if (c == nullptr || c->word.has(on_shared_stack) ||
        c->word.state() != coroutine_state::suspended)
        return 0;
    return growable_stack::trim(c->stack, c->stack_pointer());
}

std::size_t high_water(const control* c) noexcept {
    return c == nullptr || !c->stack ? 0 : high_water_bytes(c->stack);
}

void destroy_slowly(control* c) {
    const coroutine_state s = c->word.state();
    if (s == coroutine_state::running)
        fail("destruction of a running coroutine", c->info(), unknown_caller);
    if (s == coroutine_state::ready || s == coroutine_state::suspended) kill(c, unknown_caller);
    if (c->word.has(on_shared_stack)) give_up_seat(*c);
    destroy_extras(*c);
}

}  // namespace weft::detail
