// Scenes: what a program does with weft, one after the other, in a process that is refused a system
// call (refusals.cpp).
//
// The law of a scene: it is served, or it gets an error. The outcome of each is stored where the
// parent reads it, so that no call is needed to report it.
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/io/io_driver.hpp"

namespace weft::testing::refusals {

enum class outcome : std::uint8_t {
    none,       // not reached
    served,     //
    told,       // an error, by a value or an exception
    timed_out,  // waits for more than its time
    wrong,      // something else came out
};

struct report {
    static constexpr int most_scenes = 16;
    std::atomic<outcome> of[most_scenes];
};

const char* name_of_scene(int i) noexcept;
int scene_count() noexcept;

// Before anything is refused.
void prepare() noexcept;
void play_all(io_kind, report&);

}  // namespace weft::testing::refusals
