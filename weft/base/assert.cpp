#include "weft/base/assert.hpp"

#include <cstdlib>

#include "weft/base/detail/line.hpp"

namespace weft {

void fail(const char* rule, agent_info who, std::source_location caller) noexcept {
    detail::line l;
    l.text("weft: ").text(rule);
    if (who.kind != nullptr) l.text(": ").agent(who);
    if (caller.line() != 0) l.text(" (").place(caller).text(")");
    l.newline().write(2);
    std::abort();
}

}  // namespace weft
