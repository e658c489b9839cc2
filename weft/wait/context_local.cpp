#include "weft/wait/context_local.hpp"

namespace weft {
namespace detail {
namespace {

// The bindings of a thread outside any flow. Destructors of statics may read it after the thread's
// end.
constinit thread_local context_node* of_this_thread = nullptr;

// Bindings that are left at a thread's end are released.
WEFT_NOINLINE context_node*& context_of_thread() noexcept {
    struct at_end {
        ~at_end() { context_node::release(std::exchange(of_this_thread, nullptr)); }
    };
    static thread_local const at_end of_thread;
    return of_this_thread;
}

}  // namespace

context_node*& context_here() noexcept {
    flow* f = current_flow();
    return f != nullptr ? f->context : context_of_thread();
}

}  // namespace detail

void flow::inherit_context() noexcept { inherit_context(detail::context_here()); }
void flow::inherit_context(detail::context_node* those) noexcept {
    detail::context_node::keep(those);
    detail::context_node::release(std::exchange(context, those));
}

flow::~flow() {
    WEFT_ASSERT_AT(waiting == nullptr, "a flow ends while a coroutine that began in it waits",
                   unknown_caller);
    detail::context_node::release(context);
}

}  // namespace weft
