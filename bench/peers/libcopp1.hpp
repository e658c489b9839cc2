// libcopp 1.4.1: copp::future, the model of Rust's. Its "coroutine" is a future with its context,
// and a poll is its switch; the last one makes it ready. Version 2 no longer has it.
//
//   libcopp.future          the result is trivial, and is stored in the future
//   libcopp.future.object   it is not, and is allocated
#pragma once

#include <libcopp/future/future.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "bench/bodies.hpp"
#include "bench/lists.hpp"
#include "bench/value_types.hpp"

namespace bench {

template <class T>
struct libcopp_future_of : stackless_peer {
    struct looking;
    using future = copp::future::future_t<T>;
    using context = copp::future::context_t<looking>;

    // The function that a poll calls, and the state that lives as long as the context.
    struct looking {
        void (*step)(looking&, future&);
        std::optional<counted> object{};
        bool entered = false;

        explicit looking(void (*s)(looking&, future&)) : step(s) {}
        void operator()(future& f, context&) { step(*this, f); }
    };

    class coroutine {
    public:
        explicit coroutine(void (*step)(looking&, future&)) : context_(step) {}
        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;
        void resume() { future_.poll(context_); }

    private:
        future future_;
        context context_;
    };

    static void finish(future& f) {
        if constexpr (std::is_trivial_v<T>)
            f.poll_data() = T(1);
        else
            f.poll_data() = std::make_unique<T>(1);
    }

    template <unsigned Weight>
    static coroutine make(stacks&, counting<Weight>) {
        return coroutine([](looking& me, future& f) {
            if (me.entered && world.finishing) return finish(f);
            me.entered = true;
            world.resumes += Weight;
        });
    }
    static coroutine make(stacks&, holding) {
        return coroutine([](looking& me, future& f) {
            if (me.entered) {
                me.object.reset();
                return finish(f);
            }
            me.entered = true;
            world.resumes += 1;
            me.object.emplace();
        });
    }
    static coroutine make(stacks&, empty_handed) {
        return coroutine([](looking& me, future& f) {
            if (me.entered) return finish(f);
            me.entered = true;
            world.resumes += 1;
        });
    }

    // A future for each node, polled once.
    struct node;
    using sum = copp::future::future_t<std::uint64_t>;
    struct node {
        std::uint64_t number;
        std::uint64_t leaves;

        node(std::uint64_t n, std::uint64_t l) : number(n), leaves(l) {}
        void operator()(sum& f, copp::future::context_t<node>&) {
            if (leaves == 1) {
                f.poll_data() = number;
                return;
            }
            std::uint64_t total = 0;
            for (std::uint64_t i = 0; i < 10; ++i) {
                const std::uint64_t part = leaves / 10;
                total += sum_of(number + i * part, part);
            }
            f.poll_data() = total;
        }
    };
    static std::uint64_t sum_of(std::uint64_t number, std::uint64_t leaves) {
        sum f;
        copp::future::context_t<node> c(number, leaves);
        f.poll(c);
        return *f.data();
    }
    static std::uint64_t skynet(stacks&) { return sum_of(0, skynet_leaves); }
};

struct libcopp_future : libcopp_future_of<std::uint64_t> {
    static constexpr const char* name = "libcopp.future";
};
struct libcopp_future_object : libcopp_future_of<message> {
    static constexpr const char* name = "libcopp.future.object";
};

struct lists : no_peers<lists> {
    static constexpr peers<libcopp_future, libcopp_future_object> stackless{};
};

}  // namespace bench
