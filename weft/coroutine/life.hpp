// What is done to a coroutine that does not run: kill, destroy, trim, measure.
#pragma once

#include <cstddef>
#include <source_location>

#include "weft/coroutine/control.hpp"
#include "weft/coroutine/options.hpp"

namespace weft::detail {

// See coroutine::kill.
bool kill(control* c, std::source_location place);

// What destruction has to do beyond giving the block back.
void destroy_slowly(control* c);

// The options that few coroutines are made with. Throws bad_alloc, when c is gone.
void adopt_options(control& c, const coroutine_options& options);

// What a reset keeps: number, flags, name, where the stack comes from.
void move_identity(control& from, control& to) noexcept;

std::size_t trim_stack(control* c) noexcept;
std::size_t high_water(const control* c) noexcept;

}  // namespace weft::detail
