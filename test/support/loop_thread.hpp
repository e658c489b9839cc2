// loop_thread: a loop on a thread of its own, for a test that crosses threads.
#pragma once

#include <thread>

#include "weft/sched/loop.hpp"

namespace weft::testing {

class loop_thread {
public:
    loop_thread() : thread_([this] { run(); }) {}
    loop_thread(const loop_thread&) = delete;
    // What is live in the loop is ended afterwards, on the destroyer's thread.
    ~loop_thread() {
        loop_.post([this] { over_ = true; });
        thread_.join();
    }

    weft::loop& loop() noexcept { return loop_; }
    operator scheduler_ref() noexcept { return loop_; }

private:
    void run() {
        while (!over_) loop_.run_once(never);
    }

    weft::loop loop_;
    bool over_ = false;  // the thread's
    std::thread thread_;
};

}  // namespace weft::testing
