// names: what a test under the model checker calls of it, without `model::`.
#pragma once

#include "model/expect.hpp"
#include "model/model.hpp"

namespace model::names {

using model::bounded;
using model::execution;
using model::expect_found;
using model::expect_right;
using model::explore;
using model::report;
using model::require;

}  // namespace model::names
