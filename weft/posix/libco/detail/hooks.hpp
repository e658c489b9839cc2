// libco_hooks: the switch of the hooks, as a coroutine of libco needs it.
#pragma once

namespace weft::detail::libco_hooks {

// Of the fiber that runs here.
void set(bool on) noexcept;
// Called by a thread that makes its env, also in a child of a fork.
void begin() noexcept;

}  // namespace weft::detail::libco_hooks
