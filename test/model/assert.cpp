// A broken assertion in sources compiled for the checker: the exploration ends with it, and prints
// the schedule. Replaces weft/base/assert.cpp.
#include "weft/base/assert.hpp"

#include "model/model.hpp"

void weft::fail(const char* rule, agent_info who, std::source_location caller) noexcept {
    std::string text = rule;
    if (who.kind != nullptr) text += std::string(": ") + who.kind + " " + std::to_string(who.id);
    model::fail(std::move(text), caller);
}
