// libaco, with a stack for each coroutine and with one that all share; a switch keeps mxcsr and the
// x87 control word. A coroutine returns to its creator. Destroying a coroutine frees its stack and
// runs nothing on that stack.
#pragma once

#include <aco.h>

#include <cstddef>

#include "bench/bodies.hpp"
#include "bench/lists.hpp"

namespace bench {

struct libaco_stackful : stackful_peer {
    static constexpr bool kill_runs_destructors = false;

    static void prepare() {
        aco_thread_init(nullptr);
        aco_gtls_co = aco_create(nullptr, nullptr, 0, nullptr, nullptr);
    }

    class coroutine {
    public:
        // Without a stack, the coroutine gets one of its own.
        template <class Body>
        coroutine(aco_share_stack_t* shared, std::size_t bytes, Body body)
            : own_(shared == nullptr ? aco_share_stack_new2(bytes, 0) : nullptr) {
            body_ = ::new (static_cast<void*>(room_)) Body(body);
            static_assert(sizeof(Body) <= sizeof room_);
            routine_ =
                aco_create(aco_gtls_co, own_ == nullptr ? shared : own_, 0, &entry<Body>, this);
        }
        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;
        ~coroutine() {
            aco_destroy(routine_);
            if (own_ != nullptr) aco_share_stack_destroy(own_);
        }
        void resume() { aco_resume(routine_); }
        [[gnu::always_inline]] void yield() { acosw(routine_, routine_->main_co); }

    private:
        template <class Body>
        static void entry() {
            auto& me = *static_cast<coroutine*>(aco_gtls_co->arg);
            (*static_cast<Body*>(me.body_))(me);
            aco_exit();
        }

        aco_share_stack_t* own_;
        aco_t* routine_;
        void* body_;
        alignas(std::max_align_t) unsigned char room_[64];
    };

    template <class Stacks, class Body>
    static coroutine make(Stacks& from, Body body) {
        return coroutine(from.shared, from.bytes, body);
    }
};

struct libaco_private : libaco_stackful {
    static constexpr const char* name = "libaco";

    struct stacks {
        explicit stacks(std::size_t b) : bytes(b) {}
        std::size_t bytes;
        aco_share_stack_t* shared = nullptr;
    };
};

struct libaco_shared : libaco_stackful {
    static constexpr const char* name = "libaco.shared_stack";

    struct stacks {
        explicit stacks(std::size_t b) : bytes(b), shared(aco_share_stack_new2(b, 0)) {}
        std::size_t bytes;
        aco_share_stack_t* shared;
    };
};

struct lists : no_peers<lists> {
    static constexpr peers<libaco_private> stackful{};
    static constexpr peers<libaco_shared> shared_stack{};
};

}  // namespace bench
