#include "weft/sched/flow_registry.hpp"

#include <utility>

namespace weft::detail {

void flow_registry::enroll(flow& f) noexcept {
    number(f);
    flows_.push_back(f);
    ++count_;
    if (ending_) f.request_stop(stop_reason::shutdown);  // R2
}

void flow_registry::strike_off(flow& f) noexcept {
    list<flow>::remove(f);
    --count_;
    f.serial = 0;
}

void flow_registry::request_stop_of_all() noexcept {
    if (std::exchange(ending_, true)) return;
    list<flow> taken;
    taken.splice(flows_);
    while (flow* const f = taken.pop_front()) {
        flows_.push_back(*f);  // R1
        // A callback of its stop may be the end of it.
        f->kind->retain(*f);
        f->request_stop(stop_reason::shutdown);
        f->kind->release(*f);
    }
}

}  // namespace weft::detail
