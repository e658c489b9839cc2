#include "weft/coroutine/detail/extras.hpp"

#include <utility>

namespace weft::detail {

coroutine_extras& extras_of(control& c) {
    if (c.extras == nullptr) c.extras = new coroutine_extras;
    return *c.extras;
}

void set_name(control& c, std::string_view name) { extras_of(c).name = name; }

void destroy_data(control& c) noexcept {
    if (c.extras == nullptr || c.extras->data == nullptr) return;
    c.extras->destroy_data(std::exchange(c.extras->data, nullptr));
}

void destroy_extras(control& c) noexcept {
    if (c.extras == nullptr) return;
    destroy_data(c);
    delete std::exchange(c.extras, nullptr);
}

}  // namespace weft::detail
