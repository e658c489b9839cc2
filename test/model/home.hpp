// home: the executor of a model's futures. What is posted runs on the one thread of the test that
// calls run(), in the order of posting.
//
//   model::home on(1);                                            // so many threads post
//   run.thread("gives", [&] { p.set_value(1), on.leave(); });
//   run.thread("home", [&] { on.run([&] { look(); }); });         // look() before each turn
#pragma once

#include <array>
#include <cstddef>
#include <map>

#include "model/bare_executor.hpp"
#include "weft/wait/flow.hpp"

namespace model {

class home final : public bare_executor {
public:
    explicit home(unsigned posters) : posters_(posters) {}

    // Runs what was posted until every poster has left.
    template <class F>
    void run(F look) {
        for (;;) {
            look();
            wait_until([&] {
                return due() != nullptr || left_.load(std::memory_order_acquire) == posters_;
            });
            weft::runnable* const r = due();
            if (r == nullptr) return look();
            ++run_count_;
            static_cast<void>(links_.at(r).read());
            r->handle.resume();
        }
    }
    void leave() { left_.fetch_add(1, std::memory_order_release); }

    void post(weft::runnable& r) noexcept override {
        const unsigned i = post_count_.fetch_add(1, std::memory_order_relaxed);
        require(i < posts_.size(), "there is room for every post");
        links_[&r].write(0);
        posts_[i].store(&r, std::memory_order_release);
    }
    void arm(weft::timer_node& t) noexcept override { t.armed = true; }
    void disarm(weft::timer_node& t) noexcept override { t.armed = false; }

private:
    weft::runnable* due() const {
        return run_count_ == posts_.size() ? nullptr
                                           : posts_[run_count_].load(std::memory_order_acquire);
    }

    const unsigned posters_;
    std::array<weft::atomic<weft::runnable*>, 12> posts_{};
    weft::atomic<unsigned> post_count_{0};
    weft::atomic<unsigned> left_{0};
    std::size_t run_count_ = 0;  // by the thread that runs
    // An inbox's link is stored in the runnable: a post writes it, and a take reads it. So a
    // runnable that is posted again, without being ordered after its last turn, races.
    std::map<weft::runnable*, var<int>> links_;
};

}  // namespace model
