// stop_reason: why a stop was requested.
//
// Design: the first request decides, and its reason stays.
//
// Limits: a reason is one of a fixed set, and has no text.
//
//   bool is_late(weft::stop_token t) { return t.reason() == weft::stop_reason::deadline; }
#pragma once

namespace weft {

// Why a stop was requested.
enum class stop_reason : unsigned char {
    none,            // no stop is requested
    user,            // user code requested it
    deadline,        // a deadline has passed
    sibling_failed,  // another child of the same scope ended with an error
    shutdown,        // the program ends
};

}  // namespace weft
