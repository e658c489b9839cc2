#include "weft/manager/manager_errc.hpp"

#include <string>

namespace weft {
namespace {

class own_manager_category final : public std::error_category {
    const char* name() const noexcept override { return "weft.manager"; }
    std::string message(int value) const override {
        switch (static_cast<manager_errc>(value)) {
            case manager_errc::no_such_task:
                return "no such task";
            case manager_errc::already_stopping:
                return "the task is ending already";
            case manager_errc::already_started:
                return "the task has been started already";
            case manager_errc::too_many_tasks:
                return "too many tasks live";
            case manager_errc::id_in_use:
                return "the id is in use";
            case manager_errc::type_mismatch:
                return "a value of another type";
            case manager_errc::value_pending:
                return "the value before has not been taken yet";
            case manager_errc::no_such_request:
                return "no waiter for this reply";
            case manager_errc::killed:
                return "the task was killed";
            case manager_errc::value_already_taken:
                return "the task's value has been taken";
        }
        return "unknown";
    }
};

}  // namespace

const std::error_category& manager_category() noexcept {
    static const own_manager_category the_one;
    return the_one;
}

}  // namespace weft
