// kill: destroying a coroutine while it is suspended, with one live object in a frame below the
// body. kill_empty: the same frames with nothing to destroy. On stacks that were used before.
//
// The counter destructors_run gives the share of the live objects that was destroyed. A peer that
// claims to unwind and does not is an error, not a fast peer.

#include <type_traits>

#include "bench/peers.hpp"
#include "bench/row.hpp"
#include "bench/subjects.hpp"

namespace bench {

namespace {

template <class Body>
auto kill(std::size_t count, std::size_t stack_bytes, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        typename Peer::stacks stacks(stack_bytes);
        row<coroutine_of<Peer, Body>> row(count);
        for (std::size_t round = 0; round <= rounds; ++round) {
            for (std::size_t i = 0; i < count; ++i) {
                row.emplace(i, [&] { return make<Peer, Body>(stacks); });
                row[i].resume();
            }
            if (round > 0) m.start();  // the first round warms up
            for (std::size_t i = 0; i < count; ++i) row.destroy(i);
            if (round > 0) m.stop(count);
        }
        const std::size_t lives = count * (rounds + 1);
        m.expect_equal(world.resumes, lives, "resumes");
        if constexpr (std::is_same_v<Body, holding>) {
            m.expect_equal(world.built, lives, "objects built");
            m.expect_equal(world.destroyed, Peer::kill_runs_destructors ? lives : 0,
                           "objects destroyed");
            m.counter("destructors_run",
                      static_cast<double>(world.destroyed) / static_cast<double>(world.built));
        }
    };
}

}  // namespace

void add_kill() {
    add("kill/1000x128K", lists::coroutines() + lists::fast_unwind,
        kill<holding>(1000, 128 * KiB, 5));
    add("kill_empty/1000x128K", lists::coroutines() + lists::fast_unwind,
        kill<empty_handed>(1000, 128 * KiB, 5));
}

}  // namespace bench
