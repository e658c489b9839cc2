#include "test/storm/storm.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

namespace weft::testing::storm {

namespace {

using clock = std::chrono::steady_clock;

std::atomic<std::uint64_t> seed_now{0};
const char* storm_name = "storm";

struct options {
    std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t seconds = 1;
    std::uint64_t seed = static_cast<std::uint64_t>(clock::now().time_since_epoch().count());
    std::uint64_t round = 0;
    bool one_round = false;
};

[[noreturn]] void misuse(const char* what) {
    std::fprintf(stderr,
                 "storm: %s; usage: %s [--count OPERATIONS] [--seconds S] [--seed N] "
                 "[--round SEED]\n",
                 what, storm_name);
    std::exit(2);
}

std::uint64_t number(const char* text) {
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = text != nullptr ? std::strtoull(text, &end, 10) : 0;
    if (text == nullptr || *text < '0' || *text > '9' || *end != '\0' || errno != 0)
        misuse("not a number");
    return value;
}

options read(int argc, char** argv) {
    options o;
    bool timed = false;
    for (int i = 1; i < argc; i += 2) {
        const std::uint64_t value = number(i + 1 < argc ? argv[i + 1] : nullptr);
        if (std::strcmp(argv[i], "--count") == 0) {
            o.count = value;
            if (!timed) o.seconds = std::numeric_limits<std::uint32_t>::max();
        } else if (std::strcmp(argv[i], "--seconds") == 0) {
            o.seconds = value;
            timed = true;
        } else if (std::strcmp(argv[i], "--seed") == 0) {
            o.seed = value;
        } else if (std::strcmp(argv[i], "--round") == 0) {
            o.round = value;
            o.one_round = true;
        } else {
            misuse("no such option");
        }
    }
    return o;
}

}  // namespace

std::uint64_t current_seed() noexcept { return seed_now.load(std::memory_order_relaxed); }

void failed(const char* condition, const char* file, int line) noexcept {
    std::fprintf(stderr, "%s:%d: storm %s: %s does not hold; run again with --round %llu\n", file,
                 line, storm_name, condition, static_cast<unsigned long long>(current_seed()));
    std::abort();
}

int run(int argc, char** argv, const char* name, round one) {
    storm_name = name;
    const options o = read(argc, argv);
    // A crash says nothing of its seed, so the first is told before.
    std::printf("storm %s: seed %llu\n", name, static_cast<unsigned long long>(o.seed));
    std::fflush(stdout);
    random seeds(o.seed);
    const auto end = clock::now() + std::chrono::seconds(o.seconds);
    std::uint64_t rounds = 0;
    std::uint64_t operations = 0;
    while (operations < o.count && (rounds == 0 || clock::now() < end)) {
        const std::uint64_t seed = o.one_round ? o.round : seeds.next();
        seed_now.store(seed, std::memory_order_relaxed);
        random r(seed);
        operations += one(r);
        ++rounds;
    }
    std::printf("storm %s: %llu operations in %llu rounds, no fault\n", name,
                static_cast<unsigned long long>(operations),
                static_cast<unsigned long long>(rounds));
    return 0;
}

}  // namespace weft::testing::storm
