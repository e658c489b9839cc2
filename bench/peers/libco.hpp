// libco, with a stack for each coroutine and with one that all share.
//
// A resume needs the thread's environment, libco's stack of calls. Destroying a coroutine frees its
// stack and runs nothing on that stack.
#pragma once

#include <co_routine.h>

#include <cstddef>
#include <utility>

#include "bench/bodies.hpp"
#include "bench/lists.hpp"

namespace bench {

struct libco_stackful : stackful_peer {
    static constexpr bool kill_runs_destructors = false;

    class coroutine {
    public:
        template <class Body>
        coroutine(const stCoRoutineAttr_t& attributes, Body body) {
            body_ = ::new (static_cast<void*>(room_)) Body(body);
            static_assert(sizeof(Body) <= sizeof room_);
            co_create(&routine_, &attributes, &entry<Body>, this);
        }
        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;
        ~coroutine() { co_release(routine_); }
        void resume() { co_resume(routine_); }
        void yield() { co_yield (routine_); }

    private:
        template <class Body>
        static void* entry(void* p) {
            auto& me = *static_cast<coroutine*>(p);
            (*static_cast<Body*>(me.body_))(me);
            return nullptr;
        }

        stCoRoutine_t* routine_ = nullptr;
        void* body_;
        alignas(std::max_align_t) unsigned char room_[64];
    };

    template <class Stacks, class Body>
    static coroutine make(Stacks& from, Body body) {
        return coroutine(from.attributes, body);
    }
};

struct libco_private : libco_stackful {
    static constexpr const char* name = "libco";

    struct stacks {
        explicit stacks(std::size_t bytes) { attributes.stack_size = static_cast<int>(bytes); }
        stCoRoutineAttr_t attributes;
    };
};

struct libco_shared : libco_stackful {
    static constexpr const char* name = "libco.shared_stack";

    struct stacks {
        explicit stacks(std::size_t bytes) {
            attributes.stack_size = static_cast<int>(bytes);
            attributes.share_stack = co_alloc_sharestack(1, attributes.stack_size);
        }
        stCoRoutineAttr_t attributes;
    };
};

struct lists : no_peers<lists> {
    static constexpr peers<libco_private> stackful{};
    static constexpr peers<libco_shared> shared_stack{};
};

}  // namespace bench
