// life: the operations on a coroutine that does not run, but for its kill: destroy, move, trim,
// measure.
#pragma once

#include <cstddef>

#include "weft/coroutine/detail/control.hpp"
#include "weft/coroutine/options.hpp"

namespace weft::detail {

// All that destruction does except for releasing the block.
void destroy_slowly(control* c);

// Applies the options that few coroutines are made with. Throws bad_alloc; c is then destroyed.
void adopt_options(control& c, const coroutine_options& options);

// Moves what a reset keeps: id, flags, name, the source of the stack.
void move_identity(control& from, control& to) noexcept;

std::size_t trim_stack(control* c) noexcept;
std::size_t high_water(const control* c) noexcept;

}  // namespace weft::detail
