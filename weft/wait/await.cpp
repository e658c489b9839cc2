#include "weft/wait/await.hpp"

namespace weft::detail {

flow& blocking_flow_rarely(std::source_location place) noexcept {
    flow* f = current_flow();
    if (f == nullptr) {
        if (current_executor() != nullptr)
            fail("a blocking wait in what an executor runs outside of any fiber: co_await it", {},
                 place);
        return this_thread_host().own_flow();
    }
    if (f->kind->suspend == nullptr)
        fail("a blocking wait in a coroutine: co_await it", f->info(), place);
    return *f;
}

}  // namespace weft::detail
