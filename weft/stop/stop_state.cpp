#include "weft/stop/detail/stop_state.hpp"

namespace weft::detail {

bool stop_state::take(std::uint32_t set, std::uint32_t refused) noexcept {
    constexpr int read_limit = 32;
    int reads = 0;
    // Acquire: if a stop is requested, this load is all that happens, and acts as reason() does.
    std::uint32_t word = word_.load(std::memory_order_acquire);
    for (;;) {
        if ((word & refused) != 0) return false;
        if ((word & locked) != 0) {  // I1
            if (++reads % read_limit == 0)
                spin_yield();
            else
                spin_pause();
            word = word_.load(std::memory_order_acquire);  // as above
            continue;
        }
        // Acquire: with the release of unlock(). Release: with the acquire of reason(), for a
        // request.
        if (word_.compare_exchange_weak(word, word | locked | set, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
            return true;
    }
}

}  // namespace weft::detail
