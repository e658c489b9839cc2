// tables: the calls that programs are made of, by what they are about.
#pragma once

#include <span>
#include <vector>

#include "test/hook/fuzz/program.hpp"
#include "test/hook/fuzz/world.hpp"

namespace weft::testing::fuzz {

void add_makers(std::vector<call_spec>& all);
void add_movers(std::vector<call_spec>& all);
void add_messages(std::vector<call_spec>& all);
void add_lookers(std::vector<call_spec>& all);
void add_changers(std::vector<call_spec>& all);
void add_processes(std::vector<call_spec>& all);
void add_waits(std::vector<call_spec>& all);
void add_streams(std::vector<call_spec>& all);
void add_queues(std::vector<call_spec>& all);
void add_signals(std::vector<call_spec>& all);

inline parameter a_slot(unsigned kinds) { return {{}, kinds, false}; }
inline parameter a_new(unsigned kinds) { return {{}, kinds, true}; }
inline parameter one_of(std::span<const choice> all) { return {all, 0, false}; }

// 70 000 is more than a pipe holds, 300 000 more than a local socket.
inline constexpr choice sizes[] = {{"0", 0},       {"1", 1},         {"3", 3},
                                   {"8", 8},       {"10", 10},       {"100", 100},
                                   {"5000", 5000}, {"70000", 70000}, {"300000", 300000}};
inline constexpr choice short_sizes[] = {{"0", 0}, {"1", 1}, {"3", 3}, {"8", 8}, {"100", 100}};
inline constexpr choice waits[] = {{"now", 0}, {"1ms", 1, true}, {"forever", -1}};

}  // namespace weft::testing::fuzz
