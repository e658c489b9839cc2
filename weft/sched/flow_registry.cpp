#include "weft/sched/detail/flow_registry.hpp"

#include <utility>

namespace weft::detail {

void flow_registry::register_flow(flow& f) noexcept {
    number(f);
    flows_.push_back(f);
    ++count_;
    if (ending_) f.request_stop(stop_reason::shutdown);  // R2
}

void flow_registry::deregister_flow(flow& f) noexcept {
    list<flow>::remove(f);
    --count_;
    f.serial = 0;
}

flow* flow_registry::youngest_to_end() const noexcept {
    flow* found = nullptr;
    if (flow* const last = flows_.back(); last == nullptr || !last->ending) return last;
    for (flow& f : flows_)
        if (!f.ending) found = &f;
    return found;
}

const flow* flow_registry::find(executor::flow_question is_it, const void* with) const noexcept {
    for (const flow& f : flows_)
        if (is_it(f, with)) return &f;
    return nullptr;
}

void flow_registry::request_stop() noexcept {
    if (std::exchange(ending_, true)) return;
    list<flow> taken;
    taken.splice(flows_);
    while (flow* const f = taken.pop_front()) {
        flows_.push_back(*f);  // R1
        // A callback of its stop may end it.
        f->kind->retain(*f);
        f->request_stop(stop_reason::shutdown);
        f->kind->release(*f);
    }
}

}  // namespace weft::detail
