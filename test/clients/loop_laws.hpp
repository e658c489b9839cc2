// loop_laws: what is expected of foreign event loops, where each agent runs one of its own.
//
// Design: a Loop is a few lines over the library, and the laws are the same for all:
//
//   struct some_loop {
//       void after(double seconds, std::function<void()> f);
//       void when_readable(int fd, std::function<void()> f);
//       void run();  // until end()
//       void end();
//   };
#pragma once

#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "test/clients/agents.hpp"
#include "test/clients/sockets.hpp"

namespace weft::testing {

// The function that a C library calls, with the pointer that it passes back.
using callback = std::function<void()>;
inline void call_back(void* f) { (*static_cast<callback*>(f))(); }

// Two loops count to `last` in turn; the first starts with 0.
template <class Loop>
void count_in_turn(int fd, bool is_first, int last) {
    Loop loop;
    const auto say = [&](int n) { EXPECT_EQ(::write(fd, &n, sizeof n), ssize_t{sizeof n}); };
    int expected = is_first ? 1 : 0;
    loop.when_readable(fd, [&] {
        int heard = -1;
        EXPECT_EQ(::read(fd, &heard, sizeof heard), ssize_t{sizeof heard});
        EXPECT_EQ(heard, expected);
        expected += 2;
        if (heard < last) say(heard + 1);
        if (heard + 1 >= last) loop.end();
    });
    if (is_first) say(0);
    loop.run();
    EXPECT_GE(expected, last);
}

template <class Loop>
void expect_answers_in_turn(kind k) {
    constexpr int pair_count = 10;
    const std::vector<socket_pair> pairs(pair_count);
    all_at_once(k, 2 * pair_count, [&](int i) {
        count_in_turn<Loop>(pairs[static_cast<std::size_t>(i / 2)].end(i % 2), i % 2 == 0, 100);
    });
}

// For all_within().
template <class Loop>
void run_for(double seconds) {
    Loop loop;
    bool is_called = false;
    loop.after(seconds, [&] {
        is_called = true;
        loop.end();
    });
    loop.run();
    EXPECT_TRUE(is_called);
}

// A loop that has nothing to do, and a fiber in it that is stopped.
template <class Loop>
void expect_loop_stopped_at_once(const std::string& what) {
    const socket_pair silent;
    expect_stopped_at_once(what, [&](bool& inside) {
        Loop loop;
        loop.when_readable(silent.end(0), [] { ADD_FAILURE() << "nothing was sent"; });
        inside = true;
        loop.run();
    });
}

}  // namespace weft::testing
