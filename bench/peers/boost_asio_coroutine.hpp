// boost::asio::coroutine: a switch over one integer. The object holds that integer and the function
// that continues it, and is stored in place; resume() is one call through a pointer, as for a frame
// of C++20.
#pragma once

#include "bench/bodies.hpp"
#include "bench/harness.hpp"

#if __has_include(<boost/asio/coroutine.hpp>)

#include <boost/asio/coroutine.hpp>
#include <optional>

namespace bench {

struct boost_asio_coroutine : stackless_peer {
    static constexpr const char* name = "boost.asio.coroutine";

    struct coroutine {
        boost::asio::coroutine state{};
        void (*step)(coroutine&);

        [[gnu::always_inline]] void resume() { step(*this); }
    };
    struct holding_coroutine : coroutine {
        std::optional<counted> object{};
    };

    template <unsigned Weight>
    static void count(coroutine& self) {
        BOOST_ASIO_CORO_REENTER(self.state) {
            do {
                world.resumes += Weight;
                BOOST_ASIO_CORO_YIELD;
            } while (!world.finishing);
        }
    }
    static void hold(coroutine& base) {
        auto& self = static_cast<holding_coroutine&>(base);
        BOOST_ASIO_CORO_REENTER(self.state) {
            world.resumes += 1;
            self.object.emplace();
            BOOST_ASIO_CORO_YIELD;
            self.object.reset();
        }
    }
    static void hold_nothing(coroutine& self) {
        BOOST_ASIO_CORO_REENTER(self.state) {
            world.resumes += 1;
            BOOST_ASIO_CORO_YIELD;
        }
    }

    template <unsigned Weight>
    static coroutine make(stacks&, counting<Weight>) {
        return {.step = &count<Weight>};
    }
    static holding_coroutine make(stacks&, holding) { return {{.step = &hold}}; }
    static coroutine make(stacks&, empty_handed) { return {.step = &hold_nothing}; }

    // A node of skynet; its child, if any, is the next one in the array.
    struct node {
        boost::asio::coroutine state{};
        std::uint64_t number = 0;
        std::uint64_t leaves = 0;
        std::uint64_t sum = 0;
        std::uint64_t next = 0;
    };
    [[gnu::noinline]] static void step(node*& top) {
        node& self = top[0];
        node& child = top[1];
        BOOST_ASIO_CORO_REENTER(self.state) {
            if (self.leaves == 1) {
                self.sum = self.number;
            } else {
                for (; self.next < 10; ++self.next) {
                    BOOST_ASIO_CORO_YIELD {
                        const std::uint64_t part = self.leaves / 10;
                        child = {.number = self.number + self.next * part, .leaves = part};
                        ++top;
                    }
                    self.sum += child.sum;
                }
            }
        }
    }
    static std::uint64_t skynet(stacks&) {
        node nodes[9];
        node* top = nodes;
        nodes[0] = {.leaves = skynet_leaves};
        escape(top);
        for (;;) {
            step(top);
            if (!top->state.is_complete()) continue;
            if (top == nodes) return nodes[0].sum;
            --top;
        }
    }
};

}  // namespace bench

#else

namespace bench {
struct boost_asio_coroutine : not_installed {
    static constexpr const char* name = "boost.asio.coroutine";
    static constexpr const char* missing = "boost/asio is not installed (libboost-dev)";
};
}  // namespace bench

#endif
