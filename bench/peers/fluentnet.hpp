// FluentNet: futures on a looper, whose functions run in coroutines that share contexts. The looper
// does not report whether any work is left: the work that is left is counted here.
#pragma once

#include <future/Futures.h>

#include <cstddef>
#include <utility>

#include "bench/lists.hpp"

namespace bench {

struct fluentnet_future {
    static constexpr const char* name = "fluentnet.future";

    class stage {
    public:
        template <class F>
        void run(F make) {
            make();
            while (left_ != 0) looper_.loop();
        }
        template <class T, class F>
        void then(T value, F f) {
            ++left_;
            fluent::makeFuture(&looper_, value).then([this, f](T v) {
                f(v);
                --left_;
                return nullptr;
            });
        }
        template <class T, class F>
        void poll(T value, F f) {
            ++left_;
            fluent::makeFuture(&looper_, value).poll([this, f](T v) {
                const bool ready = f(v);
                if (ready) --left_;
                return ready;
            });
        }

    private:
        fluent::Looper looper_;
        std::size_t left_ = 0;
    };
};

struct lists : no_peers<lists> {
    static constexpr peers<fluentnet_future> then{};
    static constexpr peers<fluentnet_future> poll{};
};

}  // namespace bench
