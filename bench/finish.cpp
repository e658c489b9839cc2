// last_switch: the resume that runs a body to its end, and returns. destroy: the destruction of a
// coroutine that has returned. Both on stacks that were used before.

#include "bench/peers.hpp"
#include "bench/row.hpp"
#include "bench/subjects.hpp"

namespace bench {

namespace {

enum class timed { last_switch, destroy };

template <timed What>
auto finish(std::size_t count, std::size_t stack_bytes, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        typename Peer::stacks stacks(stack_bytes);
        row<coroutine_of<Peer, plain>> row(count);
        for (std::size_t round = 0; round <= rounds; ++round) {
            world.finishing = false;
            for (std::size_t i = 0; i < count; ++i) {
                row.emplace(i, [&] { return make<Peer, plain>(stacks); });
                row[i].resume();
            }
            world.finishing = true;
            const bool measured = round > 0;  // the first round warms up
            if (measured && What == timed::last_switch) m.start();
            for (std::size_t i = 0; i < count; ++i) row[i].resume();
            if (measured && What == timed::last_switch) m.stop(count);
            if (measured && What == timed::destroy) m.start();
            for (std::size_t i = 0; i < count; ++i) row.destroy(i);
            if (measured && What == timed::destroy) m.stop(count);
        }
        m.expect_equal(world.resumes, count * (rounds + 1), "resumes");
    };
}

}  // namespace

void add_finish() {
    add("last_switch/1000x128K", lists::coroutines(),
        finish<timed::last_switch>(1000, 128 * KiB, 20));
    add("destroy/1000x128K", lists::coroutines(), finish<timed::destroy>(1000, 128 * KiB, 20));
}

}  // namespace bench
