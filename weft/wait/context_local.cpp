#include "weft/wait/context_local.hpp"

namespace weft {
namespace detail {
namespace {

// Of a thread outside of any flow; what is left at its end is let go.
struct thread_context {
    context_node* top = nullptr;
    ~thread_context() { context_node::let_go(top); }
};
thread_local thread_context of_this_thread;

WEFT_NOINLINE context_node*& context_of_thread() noexcept { return of_this_thread.top; }

}  // namespace

context_node*& context_here() noexcept {
    flow* f = current_flow();
    return f != nullptr ? f->context : context_of_thread();
}

}  // namespace detail

void flow::inherit_context() noexcept { inherit_context(detail::context_here()); }
void flow::inherit_context(detail::context_node* those) noexcept {
    detail::context_node::keep(those);
    detail::context_node::let_go(std::exchange(context, those));
}

flow::~flow() {
    WEFT_ASSERT_AT(waiting == nullptr, "a flow ends while a coroutine that began in it waits",
                   unknown_place);
    detail::context_node::let_go(context);
}

}  // namespace weft
