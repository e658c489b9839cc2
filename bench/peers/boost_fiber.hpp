// Boost.Fiber with its default scheduler, round robin on one thread, and pooled stacks.
#pragma once

#include "bench/harness.hpp"

#if __has_include(<boost/fiber/all.hpp>) && WEFT_BENCH_BOOST_FIBER

#include <boost/fiber/all.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>

namespace bench {

struct boost_fiber {
    static constexpr const char* name = "boost.fiber";

    class stage {
    public:
        explicit stage(std::size_t stack_bytes) : stacks_(stack_bytes) {}

        template <class F>
        void spawn(F f) {
            fibers_.emplace_back(std::allocator_arg, stacks_, std::move(f));
        }
        void run() {
            // A fiber that runs may add fibers.
            for (std::size_t i = 0; i < fibers_.size(); ++i) fibers_[i].join();
        }
        template <class F>
        void spawn_and_join(F f) {
            boost::fibers::fiber(std::allocator_arg, stacks_, std::move(f)).join();
        }

    private:
        boost::fibers::pooled_fixedsize_stack stacks_;
        std::deque<boost::fibers::fiber> fibers_;  // a push does not move a fiber that is joined
    };

    [[gnu::always_inline]] static void yield() { boost::this_fiber::yield(); }

    using mutex = boost::fibers::mutex;

    template <class Channel, class T>
    class channel_of {
    public:
        template <class... A>
        explicit channel_of(A... a) : channel_(a...) {}
        void send(T value) {
            if (channel_.push(std::move(value)) != boost::fibers::channel_op_status::success)
                std::abort();
        }
        T recv() { return channel_.value_pop(); }
        void close() { channel_.close(); }
        template <class F>
        void drain(F f) {
            for (T value : channel_) f(std::move(value));
        }

    private:
        Channel channel_;
    };
    template <class T>
    using channel = channel_of<boost::fibers::buffered_channel<T>, T>;
    template <class T>
    struct rendezvous : channel_of<boost::fibers::unbuffered_channel<T>, T> {
        explicit rendezvous(std::size_t) {}
    };
};

}  // namespace bench

#else

namespace bench {
struct boost_fiber : not_installed {
    static constexpr const char* name = "boost.fiber";
    static constexpr const char* missing = "boost/fiber is not installed (libboost-fiber1.81-dev)";
};
}  // namespace bench

#endif
