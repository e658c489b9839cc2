#include "styles.hpp"

namespace echo {

std::span<const style> all_styles() {
    static constexpr style styles[] = {
        {"switch", switch_sessions},
        {"task", task_sessions},
        {"stackful", stackful_sessions},
        {"shared", shared_sessions},
    };
    return styles;
}

const style* find_style(std::string_view name) {
    for (const style& s : all_styles()) {
        if (name == s.name) return &s;
    }
    return nullptr;
}

}  // namespace echo
