#include "weft/task/when_any.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace weft::detail {

std::vector<std::size_t> winners(std::span<task_flow* const> tasks, std::size_t count) {
    std::vector<std::size_t> all(std::min(count, tasks.size()));
    for (std::size_t i = 0; i < tasks.size(); ++i)
        if (const std::size_t place = tasks[i]->member.place; place <= all.size())
            all[place - 1] = i;
    return all;
}

}  // namespace weft::detail
