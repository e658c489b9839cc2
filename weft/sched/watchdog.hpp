// watchdog: reports a flow that keeps a loop's thread for too long, so that nothing else runs
// there.
//
// Design: the loop records the flow of each turn when it begins, and a thread checks now and then
// whether that turn still lasts. So a turn costs some stores while it is watched and one branch
// while it is not, and the loop reads no clock for it.
//
// A pool creates one by itself: {.stall_threshold = 100ms}.
//
// Limits: each long turn is reported once, while it lasts, between one limit and two after its
// start; or, where nothing ran for a while before, up to a second later: the watching thread wakes
// at most once a second while all loops are idle. A watchdog is made before its loops run, and
// destroyed after they have run.
//
//   weft::watchdog w(loop, 100ms);     // until it is destroyed
//
// Model: test/model/turn_record_test.cpp
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/base/clock.hpp"
#include "weft/base/detail/system_mutex.hpp"
#include "weft/sched/loop.hpp"

namespace weft {

// A turn that lasts too long.
struct stall_info {
    const char* kind = nullptr;  // of the flow; null: a function outside any flow
    std::uint64_t id = 0;
    char name[32] = {};  // truncated; empty: no name
    duration lasted{};   // at least
};

class watchdog {
public:
    using handler = void (*)(const stall_info&);  // on the watching thread

    // The loops do not run yet, and no longer run when it is destroyed. The default handler prints
    // a line. Throws system_error, bad_alloc.
    watchdog(const std::vector<loop*>& loops, duration limit, handler h = print);
    watchdog(loop& l, duration limit, handler h = print)
        : watchdog(std::vector<loop*>{&l}, limit, h) {}
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    // Joins the watching thread.
    ~watchdog();

    static void print(const stall_info&);

private:
    class post;

    void look_now_and_then() noexcept;

    const duration limit_;
    const handler handler_;
    std::vector<std::unique_ptr<post>> posts_;
    detail::system_mutex lock_;
    detail::system_condition over_changed_;
    bool over_ = false;
    std::thread thread_;
};

}  // namespace weft
