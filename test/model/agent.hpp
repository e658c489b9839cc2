// agent: blocks in one thread of a test, by the same calls as a fiber: a flow that can suspend, and
// an executor that resumes the flow, by a word.
//
//   model::agent a;
//   run.thread("locks", [&] { a.run([&] { const std::lock_guard held(m); ... }); });
//   run.go();
//   a.check();
#pragma once

#include "model/bare_executor.hpp"
#include "weft/wait/flow.hpp"
#include "weft/wait/waiter.hpp"

namespace model {

class agent final : public bare_executor {
public:
    agent() : flow_(kind) {
        flow_.home = this;
        flow_.set_handle(std::coroutine_handle<>::from_address(this));  // compared only
    }

    // In a thread of the execution.
    template <class F>
    void run(F body) {
        weft::detail::this_thread_runs() = {&flow_, this};
        frame_.write(0);  // a wake that is not ordered after it races
        body();
        weft::detail::this_thread_runs() = {};
    }
    // After all threads: each wait has had one wake.
    void check() const { require(posts_.load() == waits_, "each wait is woken once"); }

    void post(weft::runnable&) noexcept override {
        static_cast<void>(frame_.read());  // a wake after it has continued races
        posts_.fetch_add(1, std::memory_order_release);
    }
    bool running_in_this_thread() const noexcept override {
        return weft::current_executor() == this;
    }

private:
    static void suspend(weft::flow& f) {
        auto& self = *static_cast<agent*>(f.home);
        const int mine = ++self.waits_;
        wait_until([&] { return self.posts_.load(std::memory_order_acquire) >= mine; });
        self.frame_.write(mine);
    }
    static void nothing(weft::flow&) noexcept {}
    static weft::agent_info info(const weft::flow&) noexcept { return {"agent", 0, nullptr}; }
    static constexpr weft::flow_kind kind = {"agent", suspend, nothing, nothing, nothing, info};

    weft::flow flow_;
    weft::atomic<int> posts_{0};
    int waits_ = 0;
    var<int> frame_;
};

}  // namespace model
