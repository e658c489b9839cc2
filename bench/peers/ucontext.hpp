// POSIX ucontext over malloc. Destroying a coroutine frees its stack and runs nothing on the stack.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "bench/bodies.hpp"
#include "bench/harness.hpp"

namespace bench {

struct ucontext_peer : stackful_peer {
    static constexpr const char* name = "ucontext";
    static constexpr bool kill_runs_destructors = false;

    struct stacks {
        explicit stacks(std::size_t b) : bytes(b) {}
        std::size_t bytes;
    };

    class coroutine {
    public:
        template <class Body>
        coroutine(stacks& from, Body body) : stack_(std::malloc(from.bytes)) {
            if (stack_ == nullptr) throw std::bad_alloc();
            const std::size_t usable_bytes = from.bytes - body_bytes;
            static_assert(sizeof(Body) <= body_bytes);
            body_ = ::new (static_cast<char*>(stack_) + usable_bytes) Body(body);
            getcontext(&own_);
            own_.uc_stack.ss_sp = stack_;
            own_.uc_stack.ss_size = usable_bytes;
            own_.uc_link = &caller_;
            const auto address = reinterpret_cast<std::uintptr_t>(this);
            makecontext(&own_, reinterpret_cast<void (*)()>(&entry<Body>), 2,
                        static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
        }
        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;
        ~coroutine() { std::free(stack_); }

        [[gnu::always_inline]] void resume() { swapcontext(&caller_, &own_); }
        [[gnu::always_inline]] void yield() { swapcontext(&own_, &caller_); }

    private:
        static constexpr std::size_t body_bytes =
            64;  // at the top, in the page that is used anyway

        template <class Body>
        static void entry(unsigned high, unsigned low) {
            const std::uintptr_t address = (static_cast<std::uintptr_t>(high) << 32) | low;
            auto& me = *reinterpret_cast<coroutine*>(address);
            (*static_cast<Body*>(me.body_))(me);
        }

        void* stack_;
        void* body_;
        ucontext_t own_;
        ucontext_t caller_;
    };

    template <class Body>
    static coroutine make(stacks& from, Body body) {
        return coroutine(from, body);
    }
};

}  // namespace bench
