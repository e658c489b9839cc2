// schedule: what one execution did, operation by operation, and its text.
#pragma once

#include <cstddef>
#include <source_location>
#include <string>

#include "model/memory.hpp"

namespace model::detail {

inline constexpr std::size_t no_atomic = most_atomics;

struct event {
    actor who;
    const char* kind;
    const char* order;
    std::size_t atomic;
    word before, after;  // the same, when it changed nothing
    const char* remark;
    std::source_location place;
};

const char* name_of(memory_order);
std::string spelt(std::source_location);  // "inbox.hpp:60"
// One line of text, for the thread of this name.
std::string spelt(const event&, const std::string& who);

}  // namespace model::detail
