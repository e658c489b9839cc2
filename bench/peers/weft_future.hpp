// weft::future on one weft::loop, with functions that must not wait, and with functions that may.
#pragma once

#include <cstddef>
#include <utility>

#include "weft/future/promise.hpp"
#include "weft/sched/loop.hpp"

namespace bench {

template <bool InFiber>
struct weft_future_of {
    class stage {
    public:
        // `make` runs in the loop; afterwards the loop runs the functions that `make` has added.
        template <class F>
        void run(F make) {
            loop_.post(std::move(make));
            loop_.run();
        }
        template <class T, class F>
        void then(T value, F f) {
            auto made = weft::make_ready_future(loop_, value);
            if constexpr (InFiber)
                made.then(std::move(f)).detach();
            else
                made.then(weft::plain, std::move(f)).detach();
        }
        template <class T, class F>
        void poll(T value, F f) {
            auto made = weft::make_ready_future(loop_, value);
            if constexpr (InFiber)
                made.poll(std::move(f)).detach();
            else
                made.poll(weft::plain, std::move(f)).detach();
        }

    private:
        weft::loop loop_;
    };
};

struct weft_future : weft_future_of<false> {
    static constexpr const char* name = "weft.future";
};
struct weft_future_in_fiber : weft_future_of<true> {
    static constexpr const char* name = "weft.future.fiber";
};

}  // namespace bench
