// symbols: the table of the functions that replace libc's in weft::hook, for the self-check and for
// reports.
#pragma once

#include <span>

#include "weft/hook/detail/calls.hpp"

namespace weft::hook {

struct hooked_symbol {
    call_info of;
    void (*function)();  // weft's own
};

// In the order of calls.def, so that a `call` is an index.
std::span<const hooked_symbol> hooked_symbols() noexcept;

}  // namespace weft::hook
