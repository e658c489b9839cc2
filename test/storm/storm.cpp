#include "test/storm/storm.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "weft/base/platform.hpp"

#if WEFT_TSAN
// libstdc++ counts the owners of an exception in its shared object, where ThreadSanitizer does not
// see that the last one comes after the others.
extern "C" const char* __tsan_default_suppressions() {
    return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif

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
    std::uint64_t progress = 0;
    bool one_round = false;
};

[[noreturn]] void misuse(const char* what) {
    std::fprintf(stderr,
                 "storm: %s; usage: %s [--count OPERATIONS] [--seconds S] [--seed N] "
                 "[--round SEED] [--progress S]\n",
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
        } else if (std::strcmp(argv[i], "--progress") == 0) {
            o.progress = value;
        } else {
            misuse("no such option");
        }
    }
    return o;
}

// A crash prints no seed by itself. Calls only what a signal handler may.
void tell_seed(int number) {
    char line[64] = "storm: crashed; run again with --round ";
    std::size_t size = std::strlen(line);
    char digits[20];
    std::size_t count = 0;
    std::uint64_t seed = current_seed();
    do digits[count++] = static_cast<char>('0' + seed % 10);
    while ((seed /= 10) != 0);
    while (count != 0) line[size++] = digits[--count];
    line[size++] = '\n';
    const ::ssize_t written = ::write(STDERR_FILENO, line, size);
    static_cast<void>(written);
    std::signal(number, SIG_DFL);
    std::raise(number);
}

// Not where a sanitizer has handlers of its own.
void tell_seed_of_crashes() {
    for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
        struct sigaction now{};
        ::sigaction(number, nullptr, &now);
        if (now.sa_handler == SIG_DFL) std::signal(number, tell_seed);
    }
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
    tell_seed_of_crashes();
    std::printf("storm %s: seed %llu\n", name, static_cast<unsigned long long>(o.seed));
    std::fflush(stdout);
    random seeds(o.seed);
    const auto begin = clock::now();
    const auto end = begin + std::chrono::seconds(o.seconds);
    const auto each = std::chrono::seconds(o.progress);
    auto told = begin;
    std::uint64_t rounds = 0;
    std::uint64_t operations = 0;
    while (operations < o.count && (rounds == 0 || clock::now() < end)) {
        const std::uint64_t seed = o.one_round ? o.round : seeds.next();
        seed_now.store(seed, std::memory_order_relaxed);
        random r(seed);
        operations += one(r);
        ++rounds;
        const auto now = clock::now();
        if (o.progress == 0 || now - told < each) continue;
        told = now;
        std::printf("storm %s: %llu operations after %lld s\n", name,
                    static_cast<unsigned long long>(operations),
                    static_cast<long long>(
                        std::chrono::duration_cast<std::chrono::seconds>(now - begin).count()));
        std::fflush(stdout);
    }
    std::printf("storm %s: %llu operations in %llu rounds, no fault\n", name,
                static_cast<unsigned long long>(operations),
                static_cast<unsigned long long>(rounds));
    return 0;
}

}  // namespace weft::testing::storm
