#include "weft/sched/pool.hpp"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "weft/base/detail/system_error.hpp"
#include "weft/sched/detail/pool_core.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::fork_deque*, weft_tls_fork_place);

namespace weft {
namespace {

constexpr duration end_patience = std::chrono::seconds(1);

unsigned processor_count() noexcept {
    ::cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
        return std::max(1u, static_cast<unsigned>(CPU_COUNT(&set)));
    return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

// All workers sleep, nothing is left to start and no flow is live. Called when all are idle.
// Relaxed, all: idle_set's look has acquired what the workers wrote before.
bool pool::core::has_nothing_left() const noexcept {
    if (has_work() || strand_flow_count.load(std::memory_order_relaxed) != 0) return false;
    return std::none_of(workers.begin(), workers.end(), [](const auto& w) {
        return w->flow_count.load(std::memory_order_relaxed) != 0 ||  // as said above
               w->own().has_posted();
    });
}

bool pool::core::wait_until_quiet(time_point until) {
    return quiet.wait_until(until, [this] { return has_nothing_left(); });
}

void pool::core::begin(const pool_options& options) {
    if (options.stall_threshold != no_timeout) {
        std::vector<loop*> loops;
        for (const auto& w : workers) loops.push_back(&w->own());
        watched.emplace(loops, options.stall_threshold, options.on_stall);
    }
    for (unsigned i = 0; i != options_count; ++i) {
        worker& w = *workers[i];
        w.thread = std::thread([&w] { w.run(); });
        begun_count = i + 1;
        char name[16];
        std::snprintf(name, sizeof name, "%.10s/%u", options.name.c_str(), i);
        ::pthread_setname_np(w.thread.native_handle(), name);
        if (options.processors.empty()) continue;
        const int p = options.processors[i % options.processors.size()];
        ::cpu_set_t set;
        CPU_ZERO(&set);
        if (p >= 0 && p < CPU_SETSIZE) CPU_SET(p, &set);
        const int e = ::pthread_setaffinity_np(w.thread.native_handle(), sizeof set, &set);
        if (e != 0) detail::throw_system_error(e, "weft::pool: a processor that it is to run on");
    }
}

void pool::core::end() noexcept {
    // If a thread could not be created, the others have run nothing yet.
    for (unsigned i = begun_count; i != options_count; ++i) all_out.arrive_and_drop();
    for (const auto& w : workers) w->order_end();
    if (begun_count == options_count)
        static_cast<void>(wait_until_quiet(after(steady_now(), end_patience)));
    leaving.store(true, std::memory_order_release);  // pairs with run()
    for (const auto& w : workers) w->own().stop();
    for (int phase = 0; phase != 3; ++phase) all_out.arrive_and_wait();
    watched.reset();
    all_out.arrive_and_drop();  // no loop is destroyed earlier
    for (const auto& w : workers)
        if (w->thread.joinable())
            w->thread.join();
        else
            w->drop_loop();
}

pool::pool(const pool_options& options) {
    const unsigned n = options.thread_count != 0 ? options.thread_count : processor_count();
    core_ = std::make_unique<core>(*this, n);
    for (unsigned i = 0; i != n; ++i)
        core_->workers.push_back(std::make_unique<core::worker>(*core_, i));
#if WEFT_EXCEPTIONS
    try {
#endif
        core_->begin(options);
#if WEFT_EXCEPTIONS
    } catch (...) {
        core_->end();
        throw;
    }
#endif
}

pool::~pool() {
    WEFT_ASSERT_AT(!running_in_this_thread(), "destruction of a pool by what it runs",
                   unknown_caller);
    core_->end();
    // Relaxed: a thread that made or ended a strand has been joined, or is the caller.
    if (core_->strand_count.load(std::memory_order_relaxed) != 0)
        fail("destruction of a pool while there are strands in it", {}, unknown_caller);
}

void pool::schedule(runnable& r) noexcept {
    detail::fork_deque* const here = detail::fork_place_here();
    if (here != nullptr && &here->home()->default_scheduler() == this && here->push(r)) return;
    core_->inbox.push(r);
    detail::parking::offer(core_->idle,
                           [this](unsigned i) { core_->workers[i]->own().look_round(); });
}

void pool::launch_again(runnable& r) noexcept {
    detail::fork_deque* const here = detail::fork_place_here();
    if (here != nullptr && &here->home()->default_scheduler() == this)
        static_cast<core::worker*>(here)->be_fair();
    schedule(r);
}

unsigned pool::thread_count() const noexcept {
    return static_cast<unsigned>(core_->workers.size());
}
executor& pool::worker(unsigned i) noexcept { return core_->workers[i]->own(); }

bool pool::running_in_this_thread() const noexcept {
    const detail::fork_deque* const p = detail::this_thread_forks();  // also within a strand
    return p != nullptr && &p->home()->default_scheduler() == this;
}

// Relaxed: the numbers only have to differ.
unsigned pool::next_strand_clock() noexcept {
    return core_->strand_number.fetch_add(1, std::memory_order_relaxed) % thread_count();
}
void pool::count_strand(int more) noexcept {
    core_->strand_count.fetch_add(more, std::memory_order_relaxed);  // see ~pool
}
// Relaxed: a worker announces itself idle after this, see has_nothing_left.
void pool::count_strand_flow(int more) noexcept {
    core_->strand_flow_count.fetch_add(more, std::memory_order_relaxed);
}

void pool::wait_until_idle(std::source_location caller) {
    WEFT_ASSERT_AT(!running_in_this_thread(), "a pool is waited for by what it runs", caller);
    static_cast<void>(core_->wait_until_quiet(never));
}

pool_stats pool::stats() const noexcept {
    pool_stats s;
    for (const auto& w : core_->workers) {
        // Relaxed: counts.
        s.steal_count += w->steal_count.load(std::memory_order_relaxed);
        s.offload_count += w->offload_count.load(std::memory_order_relaxed);
        s.remote_schedule_count += w->remote_schedule_count.load(std::memory_order_relaxed);
        s.park_count += w->park_count.load(std::memory_order_relaxed);
    }
    return s;
}

}  // namespace weft
