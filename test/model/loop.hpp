// loop: an executor of a test: its thread runs what is posted to it, in the order of posting.
//
//   model::loop a;
//   run.thread("a", [&] { a.run([&] { return over.load(...); }); });   // until it is over
//   run.go();
//   a.end();                                                           // and drops the rest
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "model/model.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/flow.hpp"

namespace model {

class loop final : public weft::executor {
public:
    // On its thread. `over` only loads; true ends it.
    template <class F>
    void run(F over) {
        weft::detail::this_thread_runs() = {nullptr, this};
        for (;;) {
            wait_until([&] { return due() != nullptr || over(); });
            weft::runnable* const r = due();
            if (r == nullptr) return;
            ++run_count_;
            if (std::erase(forgotten_, r) != 0) continue;
            // A pool's worker offloads a turn where another has less to do.
            if (gives_to_ != nullptr && r->of != nullptr && r->of->kind->leave != nullptr &&
                r->of->kind->leave(*r->of, r->handle)) {
                std::exchange(gives_to_, nullptr)->post(r->of->turn);
                continue;
            }
            weft::detail::run_turn(*this, r->handle, r->of);
        }
    }
    // The first turn that may is the other's.
    void gives_one_to(loop& other) { gives_to_ = &other; }
    // After all threads.
    void end() {
        weft::detail::this_thread_runs() = {nullptr, this};
        while (weft::runnable* const r = due()) {
            ++run_count_;
            if (std::erase(forgotten_, r) == 0) r->handle.destroy();
        }
        weft::detail::this_thread_runs() = {};
    }

    // Its end: to use it afterwards, or in another thread beside it, is a race.
    void close() { life_.write(1); }

    // Called by each post, on the thread that posts.
    std::function<void()> on_post;

    void post(weft::runnable& r) noexcept override {
        if (on_post) on_post();
        static_cast<void>(life_.read());
        const unsigned i = post_count_.fetch_add(1, std::memory_order_relaxed);
        require(i < posts_.size(), "there is room for every post");
        posts_[i].store(&r, std::memory_order_release);
    }
    void defer(std::coroutine_handle<> h, weft::flow* of) noexcept override {
        require(of != nullptr && of->turn.handle == h, "it is a flow's turn");
        post(of->turn);
    }
    void cancel_post(weft::runnable& r) noexcept override {
        wait_until([&] {
            return std::any_of(posts_.begin() + run_count_, posts_.end(), [&](const auto& p) {
                return p.load(std::memory_order_acquire) == &r;
            });
        });
        forgotten_.push_back(&r);
    }
    void register_flow(weft::flow&) noexcept override { ++living_; }
    void deregister_flow(weft::flow&) noexcept override { --living_; }
    int living() const { return living_; }
    void arm(weft::timer_node& t) noexcept override { t.armed = true; }
    void disarm(weft::timer_node& t) noexcept override { t.armed = false; }
    weft::time_point now() const noexcept override { return {}; }
    bool running_in_this_thread() const noexcept override {
        return weft::current_executor() == this;
    }

private:
    weft::runnable* due() const {
        return run_count_ == static_cast<std::ptrdiff_t>(posts_.size())
                   ? nullptr
                   : posts_[static_cast<std::size_t>(run_count_)].load(std::memory_order_acquire);
    }

    std::array<weft::atomic<weft::runnable*>, 10> posts_{};
    weft::atomic<unsigned> post_count_{0};
    std::ptrdiff_t run_count_ = 0;            // these are its own thread's
    std::vector<weft::runnable*> forgotten_;  // and are to be passed over
    loop* gives_to_ = nullptr;
    int living_ = 0;
    var<int> life_;
};

}  // namespace model
