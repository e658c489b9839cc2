#include "weft/wait/await.hpp"

namespace weft::detail {

flow& blocking_flow_rarely(std::source_location caller) noexcept {
    flow* f = current_flow();
    if (f == nullptr) {
        if (current_executor() != nullptr)
            fail("a blocking wait in what an executor runs outside of any fiber: co_await it", {},
                 caller);
        return this_thread_host().own_flow();
    }
    if (f->kind->suspend == nullptr)
        fail("a blocking wait in a coroutine: co_await it", f->info(), caller);
    return *f;
}

}  // namespace weft::detail
