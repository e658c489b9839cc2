// bare_executor: the base of the tests' executors. Each overrides the functions that its test is
// about; a call of any other function is a fault.
#pragma once

#include "model/model.hpp"
#include "weft/wait/executor.hpp"

namespace model {

class bare_executor : public weft::executor {
public:
    void post(weft::runnable&) noexcept override { unused(); }
    void cancel_post(weft::runnable&) noexcept override { unused(); }
    void defer(std::coroutine_handle<>, weft::flow*) noexcept override { unused(); }
    void arm(weft::timer_node&) noexcept override { unused(); }
    void disarm(weft::timer_node&) noexcept override { unused(); }
    void register_flow(weft::flow&) noexcept override { unused(); }
    void deregister_flow(weft::flow&) noexcept override { unused(); }
    weft::time_point now() const noexcept override { return {}; }
    bool running_in_this_thread() const noexcept override { return false; }

protected:
    ~bare_executor() = default;

private:
    [[noreturn]] static void unused() {
        fail("an executor is asked for something that its test is not about");
    }
};

}  // namespace model
