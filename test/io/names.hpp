// names: what a test of a descriptor calls of weft and of test/io, without its namespace.
#pragma once

#include <chrono>

#include "test/io/drivers.hpp"
#include "weft/fiber/fiber.hpp"

namespace weft::testing::io_names {

using namespace std::chrono_literals;
using testing::connected;
using testing::connection;
using testing::room;
using weft::bytes_of;
using weft::fiber;

}  // namespace weft::testing::io_names
