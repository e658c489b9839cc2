#include "weft/coroutine/detail/thread_block.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::thread_block, weft_tls_thread);

namespace weft::detail {

exception_state unprepared{&unprepared, 0};

}  // namespace weft::detail
