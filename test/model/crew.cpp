#include "model/crew.hpp"

namespace weft {

struct pool::core {};

pool::pool(const pool_options&) {}
pool::~pool() = default;

void pool::schedule(runnable& r) noexcept { model::crew::present->schedule(r); }
void pool::launch_again(runnable& r) noexcept { schedule(r); }
executor& pool::worker(unsigned) noexcept { return model::crew::present->clock; }
unsigned pool::next_strand_clock() noexcept { return 0; }
void pool::count_strand(int) noexcept {}
void pool::count_strand_flow(int) noexcept {}

// The default of an option.
void watchdog::print(const stall_info&) {}

}  // namespace weft
