#include "weft/posix/libco/detail/hooks.hpp"

#include "weft/hook/hook.hpp"

namespace weft::detail::libco_hooks {

void set(bool on) noexcept { hook::set_enabled(on); }

void begin() noexcept { hook::enable_in_child(); }

}  // namespace weft::detail::libco_hooks
