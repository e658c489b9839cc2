// Each layer in a scenario or two.
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "test/alloc/alloc.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/future/promise.hpp"
#include "weft/future/shared_future.hpp"
#include "weft/future/when.hpp"
#include "weft/io/file.hpp"
#include "weft/io/pipe.hpp"
#include "weft/io/resolver.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/parallel/fork_join.hpp"
#include "weft/poll/poll_future.hpp"
#include "weft/poll/poll_task.hpp"
#include "weft/posix/weft.h"
#include "weft/run/run.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sched/strand.hpp"
#include "weft/sync/broadcast.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/select.hpp"
#include "weft/sync/shared_mutex.hpp"
#include "weft/sync/unbounded_channel.hpp"
#include "weft/task/async_generator.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/generator.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/shared_task.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/when_all.hpp"
#include "weft/task/when_any.hpp"
#include "weft/task/with_nursery.hpp"

namespace weft::testing::alloc {
namespace {

using namespace std::chrono_literals;

// Longer than what a std::string holds in itself.
constexpr const char* long_text = "a text that does not lie within the object itself";

struct ends {
    int& count;
    ~ends() { ++count; }
};

// -- stacks and coroutines -----------------------------------------------------------------------

void coroutines() {
    int ended = 0, sum = 0;
    {
        std::vector<coroutine<int(int)>> all;
        for (int i = 0; i < 5; ++i)
            all.emplace_back([&, i](int n) {
                const ends e{ended};
                const std::string text = long_text;
                for (;;) n = this_coroutine::yield<int(int)>(n + i + static_cast<int>(text[0]) * 0);
                return 0;
            });
        for (auto& c : all) sum += c.resume(1);
        for (auto& c : all) sum += c.resume(2);
        coroutine<> fails([] { throw std::runtime_error(long_text); });
        bool thrown = false;
        try {
            fails.resume();
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        ALLOC_CHECK(thrown);
        all[2].kill();
    }
    ALLOC_CHECK(ended == 5 && sum == 5 + 10 + 10 + 10);
}

void shared_stacks() {
    int ended = 0;
    {
        shared_stack_group stacks(2, 64 * 1024);
        std::vector<coroutine<>> all;
        for (int i = 0; i < 5; ++i)
            all.emplace_back(
                [&] {
                    const ends e{ended};
                    std::array<char, 3000> much{};
                    much[7] = 1;
                    this_coroutine::yield();
                    this_coroutine::yield();
                    if (much[7] != 1) std::abort();
                },
                coroutine_options{.shared = &stacks});
        for (auto& c : all) c.resume();
        for (auto& c : all) c.resume();
        all[0].kill();
    }
    ALLOC_CHECK(ended == 5);
}

// For a coroutine that throws nothing itself: a resume without memory has changed nothing.
void resume_or_again(coroutine<>& c) {
    try {
        c.resume();
    } catch (const std::bad_alloc&) {
        c.resume();
    }
}

void shared_by_resumers() {
    int ended = 0;
    {
        shared_stack_group stacks(1, 64 * 1024);
        const auto yields = [&] {
            const ends e{ended};
            std::array<char, 3000> much{};
            much[7] = 1;
            this_coroutine::yield();
            if (much[7] != 1) std::abort();
        };
        const coroutine_options shared{.shared = &stacks};
        coroutine<> inner(yields, shared), other(yields, shared);
        coroutine<> outer(
            [&] {
                const ends e{ended};
                std::array<char, 5000> more{};
                more[7] = 1;
                resume_or_again(inner);
                this_coroutine::yield();
                resume_or_again(other);
                resume_or_again(inner);
                if (more[7] != 1) std::abort();
            },
            shared);
        resume_or_again(other);
        resume_or_again(outer);
        resume_or_again(outer);
        ALLOC_CHECK(inner.done() && other.done() && outer.done());
    }
    ALLOC_CHECK(ended == 3);
}

void shared_by_fibers() {
    int ended = 0;
    weft::run([&] {
        shared_stack_group stacks(1, 64 * 1024);
        std::vector<fiber> all;
        for (int i = 0; i < 3; ++i)
            all.emplace_back(
                [&] {
                    std::array<char, 3000> much{};
                    much[7] = 1;
                    this_fiber::yield();
                    ended += much[7];
                },
                fiber_options{.shared = &stacks});
        for (fiber& f : all) f.join();
    });
    ALLOC_CHECK(ended == 3);
}

// -- fibers and what they wait for ---------------------------------------------------------------

fiber_local<std::string> name_of_fiber;

void fibers() {
    int ended = 0;
    const std::size_t sum = weft::run([&] {
        std::size_t counted = 0;
        nursery n;
        for (int i = 0; i < 4; ++i)
            n.spawn([&] {
                *name_of_fiber = long_text;
                this_fiber::yield();
                ++counted;
            });
        auto value = spawn([] { return std::string(long_text); });
        fiber sleeps([&] {
            const ends e{ended};
            this_fiber::sleep_for(1h);
        });
        this_fiber::yield();
        sleeps.request_stop();
        sleeps.join();
        n.join();
        return counted + value.get().size();
    });
    ALLOC_CHECK(ended == 1 && sum == 4 + std::string(long_text).size());
}

void syncs() {
    const int sum = weft::run([] {
        int taken = 0;
        channel<std::string> c(2);
        unbounded_channel<int> u;
        mutex m;
        condition_variable changed;
        shared_mutex both;
        int waiting = 0;
        nursery n;
        n.spawn([&] {
            for (int i = 0; i < 5; ++i)
                if (!c.send(long_text)) return;
            c.close();
        });
        n.spawn([&] {
            while (auto text = c.recv()) taken += text->empty() ? 0 : 1;
        });
        for (int i = 0; i < 3; ++i)
            n.spawn([&] {
                std::unique_lock held(m);
                ++waiting;
                changed.wait(held, [&] { return waiting < 0; });
                const std::shared_lock reads(both);
                ++taken;
            });
        n.spawn([&] {
            for (int i = 0; i < 3; ++i) (void)u.send(i);
            u.close();
        });
        n.spawn([&] {
            bool more = true;
            while (more)
                select(on_recv(u, [&](int) { ++taken; }), on_closed(u, [&] { more = false; }),
                       on_timeout(1h, [] {}));
        });
        while (waiting < 3) this_fiber::yield();
        {
            const std::lock_guard held(m);
            waiting = -9;
        }
        changed.notify_all();
        n.join();
        return taken;
    });
    ALLOC_CHECK(sum == 5 + 3 + 3);
}

// -- tasks ---------------------------------------------------------------------------------------

task<int> number(int n) {
    co_await sleep_for(1us);
    co_return n;
}

generator<std::string> texts(int n) {
    for (int i = 0; i < n; ++i) co_yield long_text;
}

shared_task<std::string> text_for_all() {
    co_await sleep_for(1us);
    co_return long_text;
}

async_generator<int> slowly(int n) {
    for (int i = 0; i < n; ++i) {
        co_await sleep_for(1us);
        co_yield i;
    }
}

task<int> many_tasks() {
    auto [a, b] = co_await when_all(number(1), number(2));
    auto first = co_await when_any(number(3), sleep_for(1h));
    int sum = a + b + std::get<0>(first.value);
    std::vector<task<int>> all;
    for (int i = 0; i < 5; ++i) all.push_back(number(i));
    for (const int n : co_await when_all(std::move(all))) sum += n;
    for (const std::string& text : texts(3)) sum += text.empty() ? 100 : 0;
    auto shared = text_for_all();
    auto other = shared;
    sum += (co_await shared).size() == (co_await other).size() ? 1 : 0;
    auto gives = slowly(3);
    while (auto n = co_await gives.next()) sum += *n;
    co_await with_nursery([&](nursery& n) -> task<> {
        n.spawn(number(1));
        n.spawn(number(2));
        co_await n.async_join();
    });
    co_return sum;
}

void tasks() {
    const int sum = weft::run([&] { return await(many_tasks()); });
    ALLOC_CHECK(sum == 3 + 3 + 10 + 1 + 3);
}

void tasks_of_threads() { ALLOC_CHECK(sync_wait(number(7)) == 7); }

// -- futures -------------------------------------------------------------------------------------

void futures() {
    loop l;
    std::vector<promise<int>> promises;
    std::vector<future<int>> some, others;
    for (int i = 0; i < 6; ++i) {
        promises.emplace_back(l);
        (i < 3 ? some : others).push_back(promises.back().get_future());
    }
    auto all = when_all(std::move(some)).then([](std::vector<int> v) { return v.size(); });
    auto any = when_any(std::move(others));
    promise<std::string> given(l);
    shared_future<std::string> shared = given.get_future().share();
    auto one = shared.then([](const std::string& s) { return s.size(); });
    promise<int> late(l);
    auto limited = late.get_future().with_timeout(1ms);
    given.set_value(long_text);
    for (int i = 0; i < 4; ++i) promises[static_cast<std::size_t>(i)].set_value(i);
    for (int i = 0; i < 100 && !(all.is_ready() && any.is_ready() && one.is_ready()); ++i) {
        l.run_until_idle();
    }
    ALLOC_CHECK(all.is_ready() && any.is_ready() && one.is_ready());
    if (all.get() != 3) std::abort();
    ALLOC_CHECK(any.get().index == 0 && one.get() == std::string(long_text).size());
    late.set_value(1);
    l.run();
}

// -- loops, pools
// ----------------------------------------------------------------------------------

void pools() {
    pool p(2);
    strand s(p);
    int in_strand = 0;
    auto one = spawn([] { return 1; }, {.on = p});
    auto two = spawn([&] { return ++in_strand; }, {.on = s});
    ALLOC_CHECK(one.get() + two.get() == 2);
    ALLOC_CHECK(sync_wait(schedule_on(p, number(3))) == 3);
    ALLOC_CHECK(run_blocking([] { return 4; }) == 4);
    s.wait_until_idle();
}

task<long> fib(int n) {
    if (n < 2) co_return n;
    auto [a, b] = co_await fork_join(fib(n - 1), fib(n - 2));
    co_return a + b;
}

void forks() {
    pool p(2);
    ALLOC_CHECK(sync_wait(schedule_on(p, fib(6))) == 8);
}

// -- io
// ----------------------------------------------------------------------------------------------

template <class R>
auto value_of(R r) {
    if (!r) throw told();
    return *std::move(r);
}

void sockets() {
    const std::size_t echoed = weft::run([] {
        tcp_listener listener = value_of(tcp_listener::bind("127.0.0.1:0"));
        const endpoint at = listener.local_endpoint();
        nursery n;
        n.spawn([&] {
            auto client = value_of(listener.accept());
            std::array<std::byte, 64> bytes;
            while (const std::size_t count = client.read(bytes).value_or(0))
                if (!client.write_all(std::span(bytes).first(count))) return;
        });
        auto s = value_of(tcp_stream::connect(at));
        const std::string said = long_text;
        std::string heard(said.size(), ' ');
        if (!s.write_all(bytes_of(said))) throw told();
        if (!s.read_exact(std::as_writable_bytes(std::span(heard)))) throw told();
        s = {};
        n.join();
        return heard == said ? heard.size() : 0;
    });
    ALLOC_CHECK(echoed == std::string(long_text).size());
}

void files() {
    const bool right = weft::run([] {
        file f = value_of(file::open("/proc/self/cmdline"));
        std::array<std::byte, 16> bytes;
        return value_of(f.read(bytes)) > 0;
    });
    ALLOC_CHECK(right);
}

void names() {
    const bool found = weft::run([] { return !value_of(resolve("localhost", 80)).empty(); });
    ALLOC_CHECK(found);
    detail::default_resolver().clear_cache();
}

// -- managed tasks, poll
// -----------------------------------------------------------------------------

void manage(loop& l, task_manager<>& m, int& ended) {
    const auto waits = m.spawn_with_handle([&] {
        const ends e{ended};
        return this_managed::suspend<int>();
    });
    const auto sleeps = m.spawn([&] {
        const ends e{ended};
        this_fiber::sleep_for(1h);
    });
    const auto five = m.spawn_with_handle(number(5));
    if (!waits || !sleeps || !five) throw told();
    l.run_until_idle();
    m.resume(waits->id(), 7);
    m.kill(*sleeps);
    l.run();
    const auto seven = waits->join<int>();
    const auto is_five = five->join<int>();
    if (!seven || !is_five) throw told();
    ALLOC_CHECK(*seven == 7 && *is_five == 5 && ended == 2);
}

void managed() {
    loop l;
    int ended = 0;
    task_manager<> m({.on = l, .timers = &l, .grace = 0s});
    try {
        manage(l, m, ended);
    } catch (...) {
        m.stop_all(stop_reason::shutdown, 0s);  // what was started waits for its executor
        l.run();
        throw;
    }
}

void polls() {
    const int sum = weft::run([] {
        poll_future<int> given;
        auto waits = spawn([&] { return await(given); });
        this_fiber::yield();
        given.set(3);
        const int three = waits.get();
        return three + await(poll_task(number(4)));
    });
    ALLOC_CHECK(sum == 7);
}

// -- C
// -----------------------------------------------------------------------------------------------

void* in_c(void* result) {
    weft_attr_t large;  // each from a mapping of its own
    weft_attr_init(&large);
    weft_attr_setstacksize(&large, std::size_t{16} << 20);
    weft_t t[3];
    int begun = 0;
    for (weft_t& x : t) {
        if (weft_create(
                &x, &large, [](void*) -> void* { return weft_usleep(1), nullptr; }, nullptr) != 0)
            break;
        ++begun;
    }
    int error = 0;
    for (int i = 0; i < begun; ++i)
        if (const int of_this = weft_join(t[i], nullptr); of_this != 0) error = of_this;
    weft_key_t key;
    int value = 0;
    if (error == 0) error = weft_key_create(&key, nullptr);
    if (error == 0) {
        error = weft_setspecific(key, &value);
        if (error == 0 && weft_getspecific(key) != &value) std::abort();
        weft_key_delete(key);
    }
    *static_cast<bool*>(result) = begun == 3 && error == 0;
    return nullptr;
}

void c_fibers() {
    bool all = false;
    if (weft_run(in_c, &all, nullptr) != 0 || !all) throw told();
}

constexpr scenario every[] = {
    {"coroutine", coroutines},
    {"shared_stacks", shared_stacks},
    {"shared_by_resumers", shared_by_resumers},
    {"shared_by_fibers", shared_by_fibers},
    {"fiber", fibers},
    {"sync", syncs},
    {"task", tasks},
    {"task_on_thread", tasks_of_threads, true},
    {"future", futures},
    {"sched", pools, true},
    {"parallel", forks, true},
    {"io", sockets, true},
    {"file", files, true},
    {"names", names, true},
    {"manager", managed},
    {"poll", polls},
    {"posix", c_fibers},
};

}  // namespace
}  // namespace weft::testing::alloc

int main(int argc, char** argv) {
    return weft::testing::alloc::run_all(argc, argv, weft::testing::alloc::every);
}
