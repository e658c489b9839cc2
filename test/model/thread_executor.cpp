// A plain thread's way to wait is not in the model: what waits there is a flow of the test.
// Replaces weft/wait/thread_executor.cpp.
#include "weft/wait/detail/thread_executor.hpp"

#include "model/model.hpp"

// No flow of the test is of this kind.
const weft::flow_kind weft::detail::thread_executor::kind{"thread", nullptr, nullptr,
                                                          nullptr,  nullptr, nullptr};

weft::flow* weft::detail::flow_without_turn() noexcept { return nullptr; }
weft::detail::thread_executor& weft::detail::this_thread_host() noexcept {
    model::fail("a wait outside of any flow");
}
