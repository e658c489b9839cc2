// What a manager and a fork ask of fibers, in a program that has none: the model does not switch
// stacks. In place of weft/fiber.
#include "model/model.hpp"
#include "weft/manager/managed_fiber.hpp"

namespace weft::detail {

const flow_kind fiber_core::fiber_kind = {};
void managed_fiber_ended(void*) noexcept { model::fail("a fiber has ended, and there are none"); }
void report_unhandled(std::exception_ptr, party) { model::fail("an error is nobody's"); }

}  // namespace weft::detail
