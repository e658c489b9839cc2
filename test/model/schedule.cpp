#include "model/schedule.hpp"

#include <array>
#include <cstdio>
#include <string_view>

namespace model::detail {

namespace {

std::string spelt(word w) {
    char text[20];
    std::snprintf(text, sizeof(text), w < 10'000 ? "%llu" : "0x%llx",
                  static_cast<unsigned long long>(w));
    return text;
}

}  // namespace

const char* name_of(memory_order o) {
    constexpr std::array<const char*, 6> names = {"relaxed", "consume", "acquire",
                                                  "release", "acq_rel", "seq_cst"};
    return names[static_cast<std::size_t>(o)];
}

std::string spelt(std::source_location p) {
    std::string_view file = p.file_name();
    file.remove_prefix(file.rfind('/') + 1);
    return std::string(file) + ":" + std::to_string(p.line());
}

std::string spelt(const event& e, const std::string& who) {
    std::string atomic, what;
    if (e.atomic != no_atomic) {
        atomic = "a" + std::to_string(e.atomic);
        what = spelt(e.before);
        if (e.before != e.after) what += " -> " + spelt(e.after);
    }
    char line[256];
    std::snprintf(line, sizeof(line), "  %-10s %-8s %-3s %-8s %-22s %-8s %s\n", who.c_str(), e.kind,
                  atomic.c_str(), e.order, what.c_str(), e.remark, spelt(e.place).c_str());
    return line;
}

}  // namespace model::detail
