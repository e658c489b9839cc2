// The bodies that every peer runs, and the small world they act on.
//
// A stackful peer runs these very functions; a stackless peer cannot yield from a function that it
// calls, so its file has the same bodies in its own syntax. A body does next to nothing between two
// yields: it counts, so that the sum proves every resume, and checks whether to finish.
//
//   resume -> [ resumes += weight ] -> yield        while the world is not finishing
//   resume -> return                                once it is
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "bench/escape.hpp"

namespace bench {

struct world_state {
    std::uint64_t resumes = 0;    // weighted by the body
    std::uint64_t built = 0;      // counted objects
    std::uint64_t destroyed = 0;  // counted objects
    const char* place = nullptr;  // an address on the stack of the body that ran last
    bool finishing = false;
};
inline world_state world;

// The one live object of a kill.
struct counted {
    counted() { ++world.built; }
    ~counted() { ++world.destroyed; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
};

// Counts and yields. Weight makes bodies distinct: sixteen weights are sixteen functions, sixteen
// yield sites.
template <unsigned Weight>
struct counting {
    template <class Self>
    void operator()(Self& self) const {
        do {
            world.resumes += Weight;
            self.yield();
        } while (!world.finishing);
    }
};
using plain = counting<1>;

template <class Self>
[[gnu::noinline]] void yield_holding_an_object(Self& self) {
    counted object;
    escape(&object);
    self.yield();
}

template <class Self>
[[gnu::noinline]] void yield_holding_nothing(Self& self) {
    self.yield();
    escape(&self);
}

// Suspended with one live object, in a frame below the body.
struct holding {
    template <class Self>
    void operator()(Self& self) const {
        world.resumes += 1;
        yield_holding_an_object(self);
    }
};

// The same frames, nothing to destroy.
struct empty_handed {
    template <class Self>
    void operator()(Self& self) const {
        world.resumes += 1;
        yield_holding_nothing(self);
    }
};

// Records where the stack of the body is.
struct locating {
    template <class Self>
    void operator()(Self& self) const {
        const char here = 0;
        world.place = &here;
        escape(&here);
        self.yield();
    }
};

// Makes a coroutine; never inlined, so that no compiler knows which body is behind a handle.
template <class Peer, class Body>
[[gnu::noinline]] auto make(typename Peer::stacks& stacks) {
    return Peer::make(stacks, Body{});
}
template <class Peer, class Body>
using coroutine_of = decltype(make<Peer, Body>(std::declval<typename Peer::stacks&>()));

// Skynet: a tree of coroutines ten wide, a million leaves, depth first; the sum of the leaves'
// numbers comes up through it.
inline constexpr std::uint64_t skynet_leaves = 1'000'000;
inline constexpr std::uint64_t skynet_coroutines = 1'111'111;
inline constexpr std::uint64_t skynet_sum = 499'999'500'000;

template <class Peer>
struct skynet_body {
    typename Peer::stacks* stacks;
    std::uint64_t number;
    std::uint64_t leaves;
    std::uint64_t* result;

    template <class Self>
    void operator()(Self&) const {
        if (leaves == 1) {
            *result = number;
            return;
        }
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < 10; ++i) {
            const std::uint64_t part = leaves / 10;
            std::uint64_t child_sum = 0;
            auto child =
                Peer::make(*stacks, skynet_body{stacks, number + i * part, part, &child_sum});
            child.resume();
            sum += child_sum;
        }
        *result = sum;
    }
};

template <class Peer>
std::uint64_t stackful_skynet(typename Peer::stacks& stacks) {
    std::uint64_t sum = 0;
    auto root = Peer::make(stacks, skynet_body<Peer>{&stacks, 0, skynet_leaves, &sum});
    root.resume();
    return sum;
}

// The common part of most peers; a peer declares only its differences.
struct stackful_peer {
    static constexpr bool kill_runs_destructors = true;
    static constexpr bool prefetches = false;  // has prefetch()
    static constexpr bool guards = false;      // claims a guard page below each stack
    static void prepare() {}                   // called first in the child
};
struct stackless_peer : stackful_peer {
    struct stacks {
        explicit stacks(std::size_t) {}
    };
};

}  // namespace bench
