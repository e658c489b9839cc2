#include "styles.hpp"

#include <span>

#include "weft/io/driver_uring.hpp"

namespace echo {

std::span<const style> all_styles() {
    static constexpr style styles[] = {
        {"switch", begin_switch},
        {"stackful", begin_stackful},
        {"shared", begin_shared},
        {"fiber.epoll", begin_fiber},
        {"fiber.io_uring", begin_fiber, weft::io_kind::io_uring},
        {"task.epoll", begin_task},
        {"task.io_uring", begin_task, weft::io_kind::io_uring},
    };
    return styles;
}

const style* find_style(std::string_view name) {
    for (const style& s : all_styles()) {
        if (name == s.name) return &s;
    }
    return nullptr;
}

const char* refusal_of(const style& s) {
    const char* why = nullptr;
    if (s.io == weft::io_kind::io_uring) static_cast<void>(weft::make_driver_uring(&why));
    return why;
}

}  // namespace echo
