// extras: the fields that few coroutines use, kept out of the control block: a name and private
// data.
#pragma once

#include <string>
#include <string_view>

#include "weft/coroutine/detail/control.hpp"

namespace weft::detail {

struct coroutine_extras {
    std::string name;
    void* data = nullptr;  // the private object
    const void* data_type = nullptr;
    void (*destroy_data)(void*) noexcept = nullptr;
};

// Makes the fields at first use.
coroutine_extras& extras_of(control& c);
void set_name(control& c, std::string_view name);
void destroy_data(control& c) noexcept;
void destroy_extras(control& c) noexcept;

}  // namespace weft::detail
