#include "weft/base/assert.hpp"

#include <cstdlib>

#include "weft/base/line.hpp"

namespace weft {

void fail(const char* rule, party who, std::source_location place) noexcept {
    detail::line l;
    l.text("weft: ").text(rule);
    if (who.kind != nullptr) {
        l.text(": ").text(who.kind).text(" ").number(who.id);
        if (who.name != nullptr && who.name[0] != '\0') l.text(" \"").text(who.name).text("\"");
    }
    if (place.line() != 0)
        l.text(" (").text(place.file_name()).text(":").number(place.line()).text(")");
    l.newline().write(2);
    std::abort();
}

}  // namespace weft
