// expect: each waiter gets a copy
// One event can have many waiters.
#include "weft/task/event_source.hpp"

#ifdef CONTROL
#include <string>
using value = std::string;
#else
#include <memory>
using value = std::unique_ptr<int>;
#endif

void use() { weft::event_source<value> e; }
