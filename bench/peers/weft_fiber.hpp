// weft::fiber on one weft::loop, with weft's own locks and channels.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/mutex.hpp"

namespace bench {

template <weft::fp_environment Environment>
struct weft_fiber_of {
    class stage {
    public:
        explicit stage(std::size_t stack_bytes) : stack_bytes_(stack_bytes) {}

        template <class F>
        void spawn(F f) {
            fibers_.emplace_back(std::move(f), options());
        }
        void run() {
            loop_.run();
            for (weft::fiber& f : fibers_) f.join();
        }
        template <class F>
        void spawn_and_join(F f) {
            weft::fiber(std::move(f), options()).join();
        }

    private:
        weft::fiber_options options() {
            return {.on = loop_, .stack_bytes = stack_bytes_, .fp = Environment};
        }

        std::size_t stack_bytes_;
        weft::loop loop_;
        std::vector<weft::fiber> fibers_;
    };

    [[gnu::always_inline]] static void yield() { weft::this_fiber::yield(); }

    using mutex = weft::mutex;

    template <class T>
    class channel {
    public:
        explicit channel(std::size_t capacity) : channel_(capacity) {}
        void send(T value) { channel_.send(std::move(value)).value(); }
        T recv() { return channel_.recv().value(); }
        void close() { channel_.close(); }
        template <class F>
        void drain(F f) {
            for (T value : channel_) f(std::move(value));
        }

    private:
        weft::channel<T> channel_;
    };
    template <class T>
    using rendezvous = channel<T>;
};

struct weft_fiber : weft_fiber_of<weft::fp_environment::own> {
    static constexpr const char* name = "weft.fiber";
};
struct weft_fiber_shared_fp : weft_fiber_of<weft::fp_environment::shared> {
    static constexpr const char* name = "weft.fiber.shared_fp";
};

}  // namespace bench
