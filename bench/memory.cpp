// rss: the resident memory of one suspended coroutine (64 KiB stacks), and its page tables.
// guarded: whether 100 000 stacks with a guard page each are possible, and whether the guards
// exist, because a peer may lose its guards silently.
//
// Both are facts and not times; the reported time is that of create and first resume.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <system_error>
#include <vector>

#include "bench/peers.hpp"
#include "bench/row.hpp"
#include "bench/subjects.hpp"

namespace bench {

namespace {

// The number behind a name in one of the kernel's "Name:  123 kB" files, in bytes.
double proc_bytes(const char* file, const char* format) {
    char text[256];
    unsigned long kilobytes = 0;
    if (std::FILE* f = std::fopen(file, "r")) {
        while (std::fgets(text, sizeof text, f) != nullptr) {
            if (std::sscanf(text, format, &kilobytes) == 1) break;
        }
        std::fclose(f);
    }
    return static_cast<double>(kilobytes) * 1024;
}
double resident_bytes() { return proc_bytes("/proc/self/smaps_rollup", "Rss: %lu"); }
double page_table_bytes() { return proc_bytes("/proc/self/status", "VmPTE: %lu"); }

// Creates and enters coroutines until the row is full or the peer fails. Returns their number.
template <class Peer, class Body, class Row, class EachEntered>
std::size_t fill(Row& row, typename Peer::stacks& stacks, EachEntered each) {
    std::size_t made = 0;
    try {
        for (; made < row.size(); ++made) {
            row.emplace(made, [&] { return make<Peer, Body>(stacks); });
            row[made].resume();
            each(made);
        }
    } catch (const std::bad_alloc&) {
    } catch (const std::system_error&) {
    }
    return made;
}

auto rss(std::size_t count, std::size_t stack_bytes) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        typename Peer::stacks stacks(stack_bytes);
        using coroutine = coroutine_of<Peer, plain>;
        row<coroutine> first(1);
        fill<Peer, plain>(first, stacks, [](std::size_t) {});
        row<coroutine> row(count);
        const double resident = resident_bytes();
        const double tables = page_table_bytes();
        m.start();
        const std::size_t made = fill<Peer, plain>(row, stacks, [](std::size_t) {});
        m.stop(made);
        const auto coroutines = static_cast<double>(made);
        m.counter("bytes_per_coroutine", (resident_bytes() - resident) / coroutines);
        m.counter("page_table_bytes", (page_table_bytes() - tables) / coroutines);
        m.counter("slot_bytes", sizeof(coroutine));
        m.counter("coroutines", coroutines);
        m.expect_equal(world.resumes, made + 1, "resumes");
    };
}

// Lets the kernel read a byte: the kernel answers EFAULT where a load would end the process.
class reader {
public:
    reader() {
        if (pipe2(ends_, O_NONBLOCK | O_CLOEXEC) != 0)
            throw std::system_error(errno, std::generic_category());
    }
    ~reader() { close(ends_[0]), close(ends_[1]); }
    reader(const reader&) = delete;
    reader& operator=(const reader&) = delete;

    bool can_read(const char* address) {
        if (write(ends_[1], address, 1) != 1) return false;
        char byte;
        return read(ends_[0], &byte, 1) == 1;
    }

    // Whether a walk down from an address on a stack reaches a guard at the end of the stack.
    bool finds_guard(const char* on_stack, std::size_t stack_bytes) {
        constexpr std::size_t page = 4096;
        for (std::size_t down = page; down <= stack_bytes + page; down += page) {
            if (!can_read(on_stack - down)) return true;
        }
        return false;
    }

private:
    int ends_[2];
};

auto guarded(std::size_t count, std::size_t stack_bytes) {
    return [=]<class Peer>(Peer, meter& m) {
        Peer::prepare();
        reader memory;
        std::vector<const char*> places(count, nullptr);
        typename Peer::stacks stacks(stack_bytes);
        row<coroutine_of<Peer, locating>> row(count);
        m.start();
        const std::size_t made =
            fill<Peer, locating>(row, stacks, [&](std::size_t i) { places[i] = world.place; });
        m.stop(made);
        std::size_t guards = 0;
        for (std::size_t i = 0; i < made; ++i) {
            if (memory.finds_guard(places[i], stack_bytes)) ++guards;
        }
        m.counter("works", made == count && guards == count ? 1 : 0);
        m.counter("coroutines", static_cast<double>(made));
        m.counter("guards", static_cast<double>(guards));
    };
}

}  // namespace

void add_memory() {
    const plan once{.repetitions = 1};
    add("rss/100000", lists::coroutines(), rss(100'000, 64 * KiB), once);
    add("guarded/100000", lists::guarding, guarded(100'000, 16 * KiB), once);
}

}  // namespace bench
