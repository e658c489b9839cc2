// weft::stackless: a switch over one integer. The object holds that integer and the function that
// continues it, and is stored in place; resume() is one call through a pointer, as for a frame of
// C++20.
#pragma once

#include <optional>

#include "bench/bodies.hpp"
#include "weft/stackless/stackless.hpp"

namespace bench {

struct weft_stackless : stackless_peer {
    static constexpr const char* name = "weft.stackless";

    struct coroutine {
        weft::stackless state{};
        void (*step)(coroutine&);

        [[gnu::always_inline]] void resume() { step(*this); }
    };
    struct holding_coroutine : coroutine {
        std::optional<counted> object{};
    };

    template <unsigned Weight>
    static void count(coroutine& self) {
        WEFT_REENTER(self.state) {
            do {
                world.resumes += Weight;
                WEFT_YIELD;
            } while (!world.finishing);
        }
    }
    static void hold(coroutine& base) {
        auto& self = static_cast<holding_coroutine&>(base);
        WEFT_REENTER(self.state) {
            world.resumes += 1;
            self.object.emplace();
            WEFT_YIELD;
            self.object.reset();
        }
    }
    static void hold_nothing(coroutine& self) {
        WEFT_REENTER(self.state) {
            world.resumes += 1;
            WEFT_YIELD;
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
        weft::stackless state{};
        std::uint64_t number = 0;
        std::uint64_t leaves = 0;
        std::uint64_t sum = 0;
        std::uint64_t next = 0;
    };
    [[gnu::noinline]] static void step(node*& top) {
        node& self = top[0];
        node& child = top[1];
        WEFT_REENTER(self.state) {
            if (self.leaves == 1) {
                self.sum = self.number;
            } else {
                for (; self.next < 10; ++self.next) {
                    WEFT_YIELD {
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
            if (!top->state.done()) continue;
            if (top == nodes) return nodes[0].sum;
            --top;
        }
    }
};

}  // namespace bench
