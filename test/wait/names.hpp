// names: what a test of a wait calls of test/support, without `testing::`.
#pragma once

#include <chrono>

#include "test/support/gate.hpp"
#include "test/support/manual_executor.hpp"
#include "test/support/slow.hpp"

namespace weft::testing::names {

using namespace std::chrono_literals;
using testing::coroutine_flow;
using testing::gate;
using testing::manual_executor;
using testing::plain_coroutine;
using testing::slow;

}  // namespace weft::testing::names
