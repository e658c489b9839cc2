// skynet: 1 111 111 coroutines, ten to a parent, depth first on one thread, 16 KiB stacks. A parent
// creates its children one after the other, runs each to its end and adds the child's sum.
//
// One operation is the whole tree, so its time is in milliseconds.

#include "bench/peers.hpp"
#include "bench/subjects.hpp"

namespace bench {

void add_skynet() {
    auto skynet = []<class Peer>(Peer, meter& m) {
        Peer::prepare();
        typename Peer::stacks stacks(16 * KiB);
        std::uint64_t sum = 0;
        m.start();
        if constexpr (requires { Peer::skynet(stacks); }) {
            sum = Peer::skynet(stacks);
        } else {
            sum = stackful_skynet<Peer>(stacks);
        }
        m.stop(1);
        m.expect_equal(sum, skynet_sum, "sum");
    };
    add("skynet/1M", lists::stackless + lists::stackful, skynet, {.unit = benchmark::kMillisecond});
}

}  // namespace bench
