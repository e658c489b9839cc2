// expect: its move constructor is noexcept
// The exception would leave an item that is neither with the sender nor with the receiver.
#include "weft/sync/channel.hpp"

struct item {
    item() = default;
#ifdef CONTROL
    item(item&&) noexcept;
#else
    item(item&&);
#endif
};

void use() { weft::channel<item> c(1); }
