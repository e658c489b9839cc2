// After a peak of 20 000 deep fibers the program is idle, and calls nothing: ten seconds later its
// resident memory is within a tenth of what it was. In a process of its own, as memory is counted.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/run/run.hpp"
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

// The resident memory while so many of them stand.
long peak(long count) {
    weft::latch all(count), end(1);
    std::vector<weft::fiber> fibers;
    for (long n = 0; n < count; ++n) fibers.emplace_back([&] { stand_deep(all, end); });
    all.wait();
    const long bytes = resident_bytes();
    end.count_down();
    for (weft::fiber& f : fibers) f.join();
    return bytes;
}

// Until `most` or less is resident, for so long at most.
long idle_until(long most, std::chrono::milliseconds limit) {
    for (; limit > 0ms && resident_bytes() > most; limit -= 500ms)
        weft::this_fiber::sleep_for(500ms);
    return resident_bytes();
}

}  // namespace

int main() {
    bool as_before = true;
    weft::run([&] {
        peak(4);  // the code that is run is in memory from now on
        const long before = idle_until(0, 2s);
        const long at_peak = peak(fiber_count);
        const long after = idle_until(before + before / 10, 10s);
        std::printf("before %ld KiB, at the peak %ld KiB, after %ld KiB\n", before / 1024,
                    at_peak / 1024, after / 1024);
        as_before = at_peak >= fiber_count * depth_bytes && after <= before + before / 10;
    });
    return as_before ? 0 : 1;
}
