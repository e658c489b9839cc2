// program: what the differential fuzzer runs: some steps, each a call that one of three actors
// makes.
//
//   0 local_stream s0 s1; 1 recv s0 100 waitall; 0 write s1 3; 0 close s1
//
// Design: a step names slots of the world (s0, s1, ...) and choices out of short lists, and nothing
// else, so that any step may be left out of a program and the rest is a program. The text is the
// program; a seed is only a way to make one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing::fuzz {

inline constexpr unsigned actor_count = 3;
inline constexpr unsigned slot_count = 12;
inline constexpr unsigned most_parameters = 5;

// The kinds of object in a slot; a parameter names all that it accepts.
enum kind : unsigned {
    stream_socket = 1,
    message_socket = 2,
    listener = 4,
    pipe_end = 8,
    terminal = 16,
    event_counter = 32,
    timer = 64,
    file = 128,
    epoll_set = 256,
    child_process = 512,
    mutex = 1024,
    condition = 2048,
    semaphore = 4096,
    rwlock = 8192,
    posix_queue = 16384,
    message_queue = 32768,
    semaphore_set = 65536,
    sockets = stream_socket | message_socket,
    bytes = sockets | pipe_end | terminal | event_counter | timer | file | posix_queue,
    anything = bytes | listener | epoll_set,
};

struct choice {
    const char* name;
    long value;
    bool timed = false;  // a call with it ends by itself, after some milliseconds
};

// A slot that the step fills, a slot that it uses, or one of several choices.
struct parameter {
    std::span<const choice> choices;
    unsigned kinds = 0;
    bool fills = false;

    bool is_slot() const noexcept { return choices.empty(); }
};

struct step {
    unsigned char actor = 0;
    unsigned char call = 0;
    std::array<unsigned char, most_parameters> arguments{};
};

// What a call does to the file in its first slot. If two calls take at the same time, the schedule
// decides which gets what, so no program has two.
// A call that holds a pipe has its lock while it waits on a thread: nothing else touches the pipe
// then. If two calls take a signal that all block, the system chooses.
enum effect : unsigned {
    looks = 0,
    takes = 1,
    gives = 2,
    ends = 4,
    locks = 8,
    holds = 16,
    of_signals = 32,
};

class making;

struct call_spec {
    const char* name;
    unsigned weight;
    unsigned does;  // of `effect`
    std::vector<parameter> parameters;
    void (*make)(making&);
    bool timed = false;
};

const std::vector<call_spec>& calls();

using program = std::vector<step>;

program generate(std::uint64_t seed);
std::string text_of(const program& p);
std::string text_of(const step& s);
// Nothing where the text is not a program.
std::optional<program> parse(std::string_view text);
bool is_timed(const program& p) noexcept;

}  // namespace weft::testing::fuzz
