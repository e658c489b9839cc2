#include "weft/coroutine/entry.hpp"

namespace weft::detail {
namespace {

void enter(context* from, context* self, void* word) {
    control& c = *control::of(self);
    arrived(c, {word, from, self});
    if (word != nullptr) [[unlikely]]
        run_on_top(c, word, from);
    c.verbs->run(&c);
}

void escaped(context* self) noexcept { control::of(self)->error = std::current_exception(); }

void left(context* self) noexcept { leave_for_good(*control::of(self)); }

}  // namespace

const entry_point coroutine_entry = {enter, escaped, left};

}  // namespace weft::detail
