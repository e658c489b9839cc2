#include "weft/coroutine/unwind_lsda.hpp"
namespace weft::detail { bool pad_terminates(std::uintptr_t, std::int32_t) noexcept { return false; } }
