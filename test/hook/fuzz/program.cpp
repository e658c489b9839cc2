#include "test/hook/fuzz/program.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "test/storm/storm.hpp"

namespace weft::testing::fuzz {
namespace {

using random = storm::random;

// What the slots hold as the program is made; a call that fails is not foreseen.
class generator {
public:
    explicit generator(std::uint64_t seed) : random_(seed) {}

    program made() {
        program p;
        const auto actors = 1 + static_cast<unsigned>(random_.below(actor_count));
        const std::uint64_t makers = 1 + random_.below(3);
        const std::uint64_t length = makers + 3 + random_.below(10);
        while (p.size() != length) {
            const unsigned call = p.size() < makers ? any_maker() : any_call();
            const auto actor = static_cast<unsigned char>(random_.below(actors));
            if (const auto s = filled(actor, call)) p.push_back(*s);
        }
        return p;
    }

private:
    static bool is_maker(const call_spec& c) noexcept {
        return std::ranges::all_of(c.parameters,
                                   [](const parameter& p) { return !p.is_slot() || p.fills; }) &&
               std::ranges::any_of(c.parameters, [](const parameter& p) { return p.fills; });
    }
    unsigned any_call() {
        unsigned all = 0;
        for (const call_spec& c : calls()) all += c.weight;
        auto at = random_.below(all);
        unsigned i = 0;
        while (at >= calls()[i].weight) at -= calls()[i++].weight;
        return i;
    }
    unsigned any_maker() {
        for (;;) {
            const unsigned i = any_call();
            if (is_maker(calls()[i])) return i;
        }
    }
    std::optional<unsigned> any_slot(unsigned kinds) {
        // Now and then it is no matter what is there, if anything.
        if (random_.one_in(40)) kinds = 0;
        std::array<unsigned, slot_count> fitting;
        unsigned count = 0;
        for (unsigned i = 0; i != slot_count; ++i)
            if (kinds == 0 || (slots_[i] & kinds) != 0) fitting[count++] = i;
        if (count == 0) return std::nullopt;
        return fitting[random_.below(count)];
    }
    std::optional<unsigned> empty_slot() {
        for (unsigned i = 0; i != slot_count; ++i)
            if (slots_[i] == 0) return i;
        return std::nullopt;
    }

    std::optional<step> filled(unsigned char actor, unsigned call) {
        const call_spec& c = calls()[call];
        step s{actor, static_cast<unsigned char>(call), {}};
        const auto before = slots_;
        for (std::size_t i = 0; i != c.parameters.size(); ++i) {
            const parameter& p = c.parameters[i];
            if (!p.is_slot()) {
                s.arguments[i] = static_cast<unsigned char>(random_.below(p.choices.size()));
                continue;
            }
            const auto slot = p.fills ? empty_slot() : any_slot(p.kinds);
            if (!slot) {
                slots_ = before;
                return std::nullopt;
            }
            if (p.fills) slots_[*slot] = p.kinds;
            s.arguments[i] = static_cast<unsigned char>(*slot);
        }
        if ((c.does & ends) != 0) slots_[s.arguments[0]] = 0;
        return s;
    }

    random random_;
    std::array<unsigned, slot_count> slots_{};
};

std::string_view next_word(std::string_view& rest) {
    const auto begin = std::min(rest.find_first_not_of(' '), rest.size());
    rest.remove_prefix(begin);
    const auto end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    return word;
}

std::optional<unsigned> number_below(std::string_view word, unsigned bound) {
    unsigned n = 0;
    for (const char c : word) {
        if (c < '0' || c > '9' || n > 1000) return std::nullopt;
        n = n * 10 + static_cast<unsigned>(c - '0');
    }
    if (word.empty() || n >= bound) return std::nullopt;
    return n;
}

std::optional<step> step_of(std::string_view text) {
    step s;
    const auto actor = number_below(next_word(text), actor_count);
    const std::string_view name = next_word(text);
    const auto call =
        std::ranges::find_if(calls(), [&](const call_spec& c) { return name == c.name; });
    if (!actor || call == calls().end()) return std::nullopt;
    s.actor = static_cast<unsigned char>(*actor);
    s.call = static_cast<unsigned char>(call - calls().begin());
    for (std::size_t i = 0; i != call->parameters.size(); ++i) {
        const parameter& p = call->parameters[i];
        const std::string_view word = next_word(text);
        std::optional<unsigned> value;
        if (p.is_slot()) {
            if (word.starts_with('s')) value = number_below(word.substr(1), slot_count);
        } else {
            const auto found =
                std::ranges::find_if(p.choices, [&](const choice& c) { return word == c.name; });
            if (found != p.choices.end()) value = static_cast<unsigned>(found - p.choices.begin());
        }
        if (!value) return std::nullopt;
        s.arguments[i] = static_cast<unsigned char>(*value);
    }
    return next_word(text).empty() ? std::optional(s) : std::nullopt;
}

}  // namespace

program generate(std::uint64_t seed) { return generator(seed).made(); }

std::string text_of(const step& s) {
    const call_spec& c = calls()[s.call];
    std::string text = std::to_string(s.actor) + " " + c.name;
    for (std::size_t i = 0; i != c.parameters.size(); ++i) {
        const parameter& p = c.parameters[i];
        text += p.is_slot() ? " s" + std::to_string(s.arguments[i])
                            : std::string(" ") + p.choices[s.arguments[i]].name;
    }
    return text;
}

std::string text_of(const program& p) {
    std::string text;
    for (const step& s : p) text.append(text.empty() ? "" : "; ").append(text_of(s));
    return text;
}

std::optional<program> parse(std::string_view text) {
    program p;
    while (!text.empty()) {
        const auto end = std::min(text.find_first_of(";\n"), text.size());
        const std::string_view one = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (one.find_first_not_of(' ') == one.npos) continue;
        const auto s = step_of(one);
        if (!s) return std::nullopt;
        p.push_back(*s);
    }
    return p;
}

bool is_timed(const program& p) noexcept {
    return std::ranges::any_of(p, [](const step& s) {
        const call_spec& c = calls()[s.call];
        if (c.timed) return true;
        for (std::size_t i = 0; i != c.parameters.size(); ++i)
            if (!c.parameters[i].is_slot() && c.parameters[i].choices[s.arguments[i]].timed)
                return true;
        return false;
    });
}

}  // namespace weft::testing::fuzz
