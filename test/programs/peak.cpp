// After a peak of 20 000 deep fibers the program is idle, and calls nothing: ten seconds later its
// resident memory is within a tenth of what it was. The fibers are of one loop, that of the main
// thread, or with `pool` as an argument those of a pool beside a main thread which has no loop. In
// a process of its own, as memory is counted.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sync/latch.hpp"

namespace {

using namespace std::chrono_literals;

constexpr long fiber_count = 20'000;
constexpr long depth_bytes = 56 * 1024;

long resident_bytes() {
    long all = 0, resident = 0;
    std::FILE* const f = std::fopen("/proc/self/statm", "r");
    if (f == nullptr || std::fscanf(f, "%ld %ld", &all, &resident) != 2) std::perror("statm");
    if (f != nullptr) std::fclose(f);
    return resident * ::sysconf(_SC_PAGESIZE);
}

[[gnu::noinline]] void stand_deep(weft::latch& all, weft::latch& end) {
    volatile char bytes[depth_bytes];
    for (long i = 0; i < depth_bytes; i += 1024) bytes[i] = 1;
    all.count_down();
    end.wait();
    bytes[0] = bytes[1024];
}

// The resident memory while so many fibers are suspended deep in their stacks.
long peak(long count, weft::pool* pool) {
    weft::latch all(count), end(1);
    std::vector<weft::fiber> fibers;
    fibers.reserve(static_cast<std::size_t>(count));  // the program's own memory goes back at once
    for (long n = 0; n < count; ++n)
        fibers.emplace_back([&] { stand_deep(all, end); }, weft::fiber_options{.on = *pool});
    all.wait();
    const long bytes = resident_bytes();
    end.count_down();
    for (weft::fiber& f : fibers) f.join();
    return bytes;
}

// Waits until `most` or less is resident, for so long at most.
long idle_until(long most, std::chrono::milliseconds limit, weft::pool* pool) {
    for (; limit > 0ms && resident_bytes() > most; limit -= 500ms) {
        if (pool != nullptr)
            std::this_thread::sleep_for(500ms);
        else
            weft::this_fiber::sleep_for(500ms);
    }
    return resident_bytes();
}

bool is_as_before(weft::pool* pool) {
    peak(4, pool);  // the code that is run is in memory from now on
    const long before = idle_until(0, 2s, pool);
    const long at_peak = peak(fiber_count, pool);
    const long after = idle_until(before + before / 10, 10s, pool);
    std::printf("before %ld KiB, at the peak %ld KiB, after %ld KiB\n", before / 1024,
                at_peak / 1024, after / 1024);
    return at_peak >= fiber_count * depth_bytes && after <= before + before / 10;
}

}  // namespace

int main(int argc, char**) {
    bool as_before = false;
    if (argc > 1) {
        weft::pool pool(2);
        as_before = is_as_before(&pool);
    } else {
        weft::run([&] { as_before = is_as_before(nullptr); });
    }
    return as_before ? 0 : 1;
}
