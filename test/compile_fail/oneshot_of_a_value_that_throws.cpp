// expect: its move constructor is noexcept
// The exception would leave a value that is neither with the sender nor with the receiver.
#include "weft/sync/oneshot.hpp"

struct item {
    item() = default;
#ifdef CONTROL
    item(item&&) noexcept;
#else
    item(item&&);
#endif
};

void use() { weft::oneshot<item> o; }
