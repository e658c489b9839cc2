#include "weft/coroutine/overflow_report.hpp"

namespace weft::detail {

void prepare_overflow_report() noexcept {}

}  // namespace weft::detail
