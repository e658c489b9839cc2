#include "weft/coroutine/detail/on_top.hpp"

namespace weft::detail {

on_top over{nullptr};
on_top introduced{nullptr};
on_top no_room{nullptr};

}  // namespace weft::detail
