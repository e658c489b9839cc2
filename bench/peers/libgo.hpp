// libgo: a coroutine is queued where it is made, and run by a thread of the scheduler. One here.
#pragma once

#include <libgo/scheduler/scheduler.h>
#include <libgo/sync/channel.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>

#include "bench/lists.hpp"

namespace bench {

struct libgo_coroutine {
    static constexpr const char* name = "libgo";

    // libgo's scheduler cannot be stopped and started again: it runs until the process ends.
    class stage {
    public:
        explicit stage(std::size_t stack_bytes) { options_.stack_size_ = stack_bytes; }

        template <class F>
        void spawn(F f) {
            running_.fetch_add(1, std::memory_order_relaxed);
            scheduler().CreateTask(
                [this, f = std::move(f)]() mutable {
                    f();
                    if (running_.fetch_sub(1, std::memory_order_release) == 1)
                        running_.notify_all();
                },
                options_);
        }
        void run() {
            std::thread([] { scheduler().Start(1); }).detach();
            for (std::size_t n; (n = running_.load(std::memory_order_acquire)) != 0;)
                running_.wait(n, std::memory_order_acquire);
        }
        template <class F>
        void spawn_and_join(F f) {
            co::Channel<bool> ended(1);
            scheduler().CreateTask(
                [&] {
                    f();
                    ended << true;
                },
                options_);
            bool end;
            ended >> end;
        }

    private:
        static co::Scheduler& scheduler() { return co::Scheduler::getInstance(); }

        co::TaskOpt options_;
        std::atomic<std::size_t> running_{0};
    };

    static void yield() { co::Processer::StaticCoYield(); }
};

struct lists : no_peers<lists> {
    static constexpr peers<libgo_coroutine> yielding{};
};

}  // namespace bench
