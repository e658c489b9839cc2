#include "weft/base/errc.hpp"

#include <string>

namespace weft {
namespace {

class own_category final : public std::error_category {
    const char* name() const noexcept override { return "weft"; }
    std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
            case errc::closed:
                return "closed";
            case errc::lagged:
                return "items were missed";
            case errc::unexpected_eof:
                return "unexpected end of stream";
            case errc::broken_promise:
                return "broken promise";
            case errc::too_few_results:
                return "too few results satisfied the predicate";
        }
        return "unknown";
    }
};

}  // namespace

const std::error_category& category() noexcept {
    static const own_category the_one;
    return the_one;
}

}  // namespace weft
