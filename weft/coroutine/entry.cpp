#include "weft/coroutine/detail/entry.hpp"

#include <exception>

namespace weft::detail {

void escaped_from_body(context* self) noexcept {
    control::of(self)->error = std::current_exception();
}

void left_body(context*) noexcept { leave_for_good(this_thread()); }

WEFT_NOINLINE void run_before_body(control& c, void* word, context* from) {
    struct guard {
        control* unrun;
        ~guard() {
            if (unrun != nullptr) unrun->verbs->destroy_body(unrun);
        }
    } unless_run{&c};
    run_on_top(c, word, from);
    unless_run.unrun = nullptr;
}

}  // namespace weft::detail
