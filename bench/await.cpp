// The cost of an await that does not wait.
//
// await_ready: awaiting a ready object, in a task. await_task: calling a task that returns at once,
// awaiting the task, and the end of its frame: skynet's step, repeated.

#include <coroutine>
#include <cstdint>

#include "bench/escape.hpp"
#include "bench/harness.hpp"
#include "bench/peers/boost_asio_awaitable.hpp"
#include "bench/peers/std_recycled.hpp"
#include "bench/subjects.hpp"
#include "weft/task/task.hpp"

namespace bench {

namespace {

struct weft_task_alone {
    static constexpr const char* name = "weft.task";
    using task = weft::task<std::uint64_t>;

    static std::uint64_t run(task t) {
        t.start();
        return t.get();
    }
};

struct ready {
    std::uint64_t value;
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    std::uint64_t await_resume() const noexcept { return value; }
};

// No compiler knows the value.
inline std::uint64_t unknown(std::uint64_t n) {
    asm volatile("" : "+r"(n));
    return n;
}

template <class Peer>
typename Peer::task sum_of_ready(std::uint64_t count) {
    std::uint64_t sum = 0;
    for (std::uint64_t n = 0; n < count; ++n) sum += co_await ready{unknown(n)};
    co_return sum;
}

template <class Peer>
[[gnu::noinline]] typename Peer::task one(std::uint64_t n) {
    co_return n;
}

template <class Peer>
typename Peer::task sum_of_tasks(std::uint64_t count) {
    std::uint64_t sum = 0;
    for (std::uint64_t n = 0; n < count; ++n) sum += co_await one<Peer>(n);
    co_return sum;
}

template <class Make>
auto sums(std::uint64_t count, Make make) {
    return [=]<class Peer>(Peer, meter& m) {
        (void)Peer::run(make(Peer{}, 1000));
        m.start();
        const std::uint64_t sum = Peer::run(make(Peer{}, count));
        m.stop(count);
        m.expect_equal(sum, count * (count - 1) / 2, "sum");
    };
}

}  // namespace

void add_await() {
    constexpr std::uint64_t count = 2'000'000;
    add("await_ready/1", peers<weft_task_alone, std_recycled>{},
        sums(count, []<class Peer>(Peer, std::uint64_t n) { return sum_of_ready<Peer>(n); }));
    add("await_task/1", peers<weft_task_alone, std_recycled, boost_asio_awaitable>{},
        sums(count, []<class Peer>(Peer, std::uint64_t n) { return sum_of_tasks<Peer>(n); }));
}

}  // namespace bench
