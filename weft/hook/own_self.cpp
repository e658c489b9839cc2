#include "weft/hook/detail/own_self.hpp"

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"

namespace weft::hook {

pthread_t everywhere::pthread_self() {
    if (!process_state::has(process_state::selves) || current_flow() == nullptr) [[likely]]
        return real::pthread_self();
    return self_of_fiber();
}

int everywhere::pthread_getattr_np(pthread_t of, pthread_attr_t* into) {
    return is_of_fiber(of) ? attributes_of_fiber(of, into) : real::pthread_getattr_np(of, into);
}

}  // namespace weft::hook
