// minicoro, over its own mapped stacks. Destroying a coroutine unmaps its stack and runs nothing on
// that stack.
#pragma once

#include <cstddef>
#include <new>

#include "bench/bodies.hpp"
#include "bench/lists.hpp"
#include "bench/peers/minicoro_header.hpp"

namespace bench {

struct minicoro_peer : stackful_peer {
    static constexpr const char* name = "minicoro";
    static constexpr bool kill_runs_destructors = false;

    struct stacks {
        explicit stacks(std::size_t b) : bytes(b) {}
        std::size_t bytes;
    };

    class coroutine {
    public:
        template <class Body>
        coroutine(const stacks& from, Body body) {
            body_ = ::new (static_cast<void*>(room_)) Body(body);
            static_assert(sizeof(Body) <= sizeof room_);
            mco_desc description = mco_desc_init(&entry<Body>, from.bytes);
            description.user_data = this;
            if (mco_create(&routine_, &description) != MCO_SUCCESS) throw std::bad_alloc();
        }
        coroutine(const coroutine&) = delete;
        coroutine& operator=(const coroutine&) = delete;
        ~coroutine() { mco_destroy(routine_); }
        void resume() { mco_resume(routine_); }
        void yield() { mco_yield(routine_); }

    private:
        template <class Body>
        static void entry(mco_coro* routine) {
            auto& me = *static_cast<coroutine*>(routine->user_data);
            (*static_cast<Body*>(me.body_))(me);
        }

        mco_coro* routine_ = nullptr;
        void* body_;
        alignas(std::max_align_t) unsigned char room_[64];
    };

    template <class Body>
    static coroutine make(stacks& from, Body body) {
        return coroutine(from, body);
    }
};

struct lists : no_peers<lists> {
    static constexpr peers<minicoro_peer> stackful{};
};

}  // namespace bench
