// The harness of the comparison: one measurement is one child process.
//
// Design: a subject is measured in a process forked for it, which starts from the same small parent
// whatever ran before. Memory is therefore fresh for every peer ("cold" is literal), a peer that
// crashes or runs out of mappings is a line in the report and not the end of the report, and
// nothing has to be freed. The child delivers its sample in shared memory.
//
// A case is subject/variant/peer. A subject is a callable subject(Peer{}, meter&), written once for
// all peers; add() registers it with Google Benchmark for each peer of a list. The time reported is
// that of one operation.
//
//   add("switch/1x16K", all_peers, []<class Peer>(Peer, meter& m) { m.start(); ... m.stop(n); });
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace bench {

// The measurement of a child, in memory that parent and child share.
struct sample {
    static constexpr std::size_t counter_limit = 8;
    struct counter {
        char name[32];
        double value;
    };

    double wall_seconds;  // within start() .. stop()
    double cpu_seconds;   // of the process, in the same spans
    double operations;
    double began;  // of the first start() and the last stop(), in seconds of the monotonic clock
    double ended;
    counter counters[counter_limit];
    std::size_t counter_count;
    char error[160];  // "" while all is well
    bool complete;    // the subject came to its end
};

// The subject's side of a sample: times spans, counts operations, states what must be true.
class meter {
public:
    explicit meter(sample& s) noexcept : sample_(s) {}

    void start() noexcept;
    void stop(std::size_t operations) noexcept;

    void counter(const char* name, double value) noexcept;

    // A checksum: false makes the case an error, with a message.
    void expect(bool condition, const char* what) noexcept;
    void expect_equal(std::uint64_t found, std::uint64_t wanted, const char* what) noexcept;

private:
    sample& sample_;
    double cpu_started_ = 0;
    double wall_started_ = 0;
};

// How a subject is run and shown.
struct plan {
    int children = 1;     // per repetition; their mean is the repetition
    int repetitions = 0;  // 0: as many as the command line says
    benchmark::TimeUnit unit = benchmark::kNanosecond;
};

// A list of peers.
template <class... Peer>
struct peers {};
template <class... A, class... B>
constexpr peers<A..., B...> operator+(peers<A...>, peers<B...>) {
    return {};
}

// A peer that is not on this machine derives from this and names what is missing.
struct not_installed {};
template <class Peer>
inline constexpr bool installed = !std::is_base_of_v<not_installed, Peer>;

// Prints on standard error, once for each peer, that the peer is skipped and why.
void skip_aloud(const char* peer, const char* missing);

// Registers one case. subject runs in the child.
void add_case(const std::string& name, plan how, std::function<void(meter&)> subject);

// Whether any case so far ended in an error.
bool any_error() noexcept;

template <class... Peer, class Subject>
void add(const char* subject_and_variant, peers<Peer...>, Subject subject, plan how = {}) {
    [[maybe_unused]] auto one = [&]<class P>(P) {
        if constexpr (installed<P>) {
            add_case(std::string(subject_and_variant) + "/" + P::name, how,
                     [subject](meter& m) { subject(P{}, m); });
        } else {
            skip_aloud(P::name, P::missing);
        }
    };
    (one(Peer{}), ...);
}

}  // namespace bench
