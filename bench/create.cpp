// create: the object alone, as the seeds count it. create_enter: with the first resume, which is
// the honest figure where a stack is taken lazily.
//
// Cold: memory that the process never touched. One coroutine is made before and stays alive, so
// that the code, and nothing else, is warm. Warm: stacks that coroutines gave back at their end, in
// two rounds before: after the first, which has the page faults, they are in memory and in no
// cache, except those of a peer that touches its stack again when the coroutine ends.

#include "bench/peers.hpp"
#include "bench/row.hpp"
#include "bench/subjects.hpp"

namespace bench {

namespace {

enum class entered : bool { no, yes };

template <class Peer, entered Enter, class Row>
void create_all(Row& row, typename Peer::stacks& stacks) {
    for (std::size_t i = 0; i < row.size(); ++i) {
        row.emplace(i, [&] { return make<Peer, plain>(stacks); });
        if constexpr (Enter == entered::yes) row[i].resume();
    }
}

template <entered Enter>
auto cold(std::size_t count, std::size_t stack_bytes) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        typename Peer::stacks stacks(stack_bytes);
        row<coroutine_of<Peer, plain>> first(1);
        create_all<Peer, Enter>(first, stacks);
        if (Enter == entered::no) first[0].resume();
        row<coroutine_of<Peer, plain>> row(count);

        m.start();
        create_all<Peer, Enter>(row, stacks);
        m.stop(count);
        m.expect_equal(world.resumes, 1 + (Enter == entered::yes ? count : 0), "resumes");
    };
}

constexpr std::size_t warm_up_rounds = 2;

template <entered Enter>
auto warm(std::size_t count, std::size_t stack_bytes, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        typename Peer::stacks stacks(stack_bytes);
        row<coroutine_of<Peer, plain>> row(count);
        for (std::size_t round = 0; round < warm_up_rounds + rounds; ++round) {
            world.finishing = false;
            if (round >= warm_up_rounds) m.start();
            create_all<Peer, Enter>(row, stacks);
            if (round >= warm_up_rounds) m.stop(count);
            if constexpr (Enter == entered::no) {
                for (std::size_t i = 0; i < count; ++i) row[i].resume();
            }
            world.finishing = true;
            for (std::size_t i = 0; i < count; ++i) row[i].resume();
            for (std::size_t i = 0; i < count; ++i) row.destroy(i);
        }
        m.expect_equal(world.resumes, count * (warm_up_rounds + rounds), "resumes");
    };
}

}  // namespace

void add_create() {
    const plan several{.children = 9};
    add("create/1000x128K", lists::coroutines(), cold<entered::no>(1000, 128 * KiB), several);
    add("create/5000x128K", lists::coroutines(), cold<entered::no>(5000, 128 * KiB));
    add("create/1000x2M", lists::coroutines(), cold<entered::no>(1000, 2 * MiB), several);
    add("create/30000x64K", lists::coroutines(), cold<entered::no>(30000, 64 * KiB));
    add("create_enter/1000x128K", lists::coroutines(), cold<entered::yes>(1000, 128 * KiB),
        several);
    add("create_enter/30000x64K", lists::coroutines(), cold<entered::yes>(30000, 64 * KiB));
    add("create_warm/1000x128K", lists::coroutines(), warm<entered::no>(1000, 128 * KiB, 20));
    add("create_warm/1000x2M", lists::coroutines(), warm<entered::no>(1000, 2 * MiB, 20));
    add("create_warm/30000x64K", lists::coroutines(), warm<entered::no>(30000, 64 * KiB, 2));
    add("create_enter_warm/1000x128K", lists::coroutines(),
        warm<entered::yes>(1000, 128 * KiB, 20));
}

}  // namespace bench
