#include "model/crew.hpp"

namespace weft {

struct pool::core {};

pool::pool(pool_options) {}
pool::~pool() = default;

void pool::launch(runnable& r) noexcept { model::crew::present->launch(r); }
void pool::launch_again(runnable& r) noexcept { launch(r); }
executor& pool::worker(unsigned) noexcept { return model::crew::present->clock; }
unsigned pool::next_strand_clock() noexcept { return 0; }
void pool::count_strand(int) noexcept {}
void pool::count_strand_flow(int) noexcept {}

// The default of an option.
void watchdog::print(const long_turn&) {}

}  // namespace weft
