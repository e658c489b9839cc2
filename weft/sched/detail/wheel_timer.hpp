// wheel_timer: a timer_node in the wheel of a loop.
//
// Design: it is made in the room that each timer_node has for its executor, so that arming a timer
// allocates nothing.
#pragma once

#include <new>

#include "weft/wait/executor.hpp"
#include "weft/wheel/wheel_node.hpp"

namespace weft::detail {

struct wheel_timer : wheel_node {
    timer_node* timer;
    explicit wheel_timer(timer_node& t) noexcept : timer(&t) {}
    static wheel_timer& of(timer_node& t) noexcept {
        return *std::launder(reinterpret_cast<wheel_timer*>(t.room));
    }
};
static_assert(sizeof(wheel_timer) <= timer_node::room_bytes);

}  // namespace weft::detail
