// Photon's threads, on one vcpu without an event engine.
//
//   photon          stacks of its own allocator, mapped for each thread
//   photon.pooled   its pooled allocator
#pragma once

#include <photon/thread/stack-allocator.h>
#include <photon/thread/thread.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "bench/lists.hpp"

namespace bench {

template <bool Pooled>
struct photon_on {
    class stage {
    public:
        explicit stage(std::size_t stack_bytes) : stack_bytes_(stack_bytes) {
            if (Pooled) photon::use_pooled_stack_allocator();
            photon::vcpu_init();
        }

        template <class F>
        void spawn(F f) {
            handles_.push_back(start(new F(std::move(f))));
        }
        void run() {
            // A thread that runs may add threads.
            for (std::size_t i = 0; i < handles_.size(); ++i) photon::thread_join(handles_[i]);
        }
        template <class F>
        void spawn_and_join(F f) {
            photon::thread_join(start(&f));
        }

    private:
        template <class F>
        photon::join_handle* start(F* f) {
            photon::thread* t = photon::thread_create(
                [](void* p) -> void* {
                    (*static_cast<F*>(p))();
                    return nullptr;
                },
                f, stack_bytes_);
            return photon::thread_enable_join(t);
        }

        std::size_t stack_bytes_;
        std::vector<photon::join_handle*> handles_;
    };

    static void yield() { photon::thread_yield(); }
};

struct photon_mapped : photon_on<false> {
    static constexpr const char* name = "photon";
};
struct photon_pooled : photon_on<true> {
    static constexpr const char* name = "photon.pooled";
};

struct lists : no_peers<lists> {
    static constexpr peers<photon_mapped, photon_pooled> yielding{};
};

}  // namespace bench
