#include "test/hook/fuzz/differs.hpp"

#include <algorithm>
#include <cctype>
#include <functional>

namespace weft::testing::fuzz {
namespace {

constexpr unsigned slow = 4;
constexpr unsigned slower = 10;
constexpr unsigned often = 10;

// The step that a line is about: "3: ..." or "5: 3 ends: ...".
std::size_t step_of(const std::string& line) {
    const auto colon = std::min(line.find(':'), line.size());
    const auto ends = line.find(" ends:");
    const auto number = [](const std::string& s) {
        std::size_t n = 0;
        for (const char c : s)
            if (c >= '0' && c <= '9') n = n * 10 + static_cast<std::size_t>(c - '0');
        return n;
    };
    return ends != line.npos && ends > colon ? number(line.substr(colon, ends - colon))
                                             : number(line.substr(0, colon));
}

std::string answer_of(const std::string& line) {
    const auto ends = line.find(" ends: ");
    if (ends != line.npos) return line.substr(ends + 7);
    const auto colon = line.find(": ");
    return colon == line.npos ? line : line.substr(colon + 2);
}

// What varies from one program to the next of the same fault.
std::string without_numbers(const std::string& s) {
    std::string out;
    for (std::size_t i = 0; i != s.size(); ++i) {
        if (s[i] == '(') {  // bytes
            const auto end = s.find(')', i);
            if (end == s.npos) break;
            i = end;
            out += "()";
        } else if (std::isdigit(static_cast<unsigned char>(s[i])) == 0) {
            out += s[i];
        } else if (s[i] == '0' || out.empty() || out.back() != 'n') {
            out += s[i] == '0' ? '0' : 'n';
        }
    }
    return out;
}

// Empty: they say the same.
std::string name_of_difference(const program& p, const transcript& threads,
                               const transcript& fibers, std::string& text) {
    for (std::size_t i = 0; i != std::max(threads.size(), fibers.size()); ++i) {
        const std::string a = i < threads.size() ? threads[i] : "nothing";
        const std::string b = i < fibers.size() ? fibers[i] : "nothing";
        if (a == b) continue;
        const std::size_t at = step_of(i < threads.size() ? a : b);
        const bool is_end = a.starts_with("at the end");
        text += "      threads: " + a + "\n      fibers:  " + b + "\n";
        const std::string call = is_end || at >= p.size() ? "the end" : calls()[p[at].call].name;
        return call + ": " + without_numbers(answer_of(a)) + " / " + without_numbers(answer_of(b));
    }
    return {};
}

// A difference counts if threads give the same answers in so many more runs.
finding compared(const program& p, int planted, unsigned slowness, unsigned again) {
    const run_options o{slowness, planted};
    const transcript threads = run_in_threads(p, o);
    finding f;
    std::string which;
    for (const io_kind k : drivers()) {
        std::string text;
        const std::string name = name_of_difference(p, threads, run_in_fibers(p, o, k), text);
        if (name.empty()) continue;
        if (f.what == verdict::same) f.name = name;
        f.what = verdict::differs;
        f.text += std::string("    over ") + name_of_driver(k) + ":\n" + text;
    }
    while (f.what == verdict::differs && again-- != 0)
        if (run_in_threads(p, o) != threads) f.what = verdict::unstable;
    return f;
}

}  // namespace

finding look_for_difference(const program& p, int planted, unsigned slowness,
                            const std::function<bool(const std::string&)>& is_known) {
    if (slowness != 0) return compared(p, planted, slowness, slowness > slower ? often : 1);
    finding f = compared(p, planted, 1, 0);
    if (is_known && is_known(f.name)) return {};
    if (f.what == verdict::differs) f = compared(p, planted, slow, 1);
    if (f.what == verdict::differs) f = compared(p, planted, slower, often);
    return f;
}

program shrunk(program p, const std::function<bool(const program&)>& still_differs) {
    const auto becomes = [&](const program& candidate) {
        if (!still_differs(candidate)) return false;
        p = candidate;
        return true;
    };
    for (bool again = true; again;) {
        again = false;
        for (std::size_t i = p.size(); i-- > 0 && p.size() > 1;) {
            program without = p;
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
            again = becomes(without) || again;
        }
    }
    for (std::size_t i = 0; i != p.size(); ++i) {
        if (program c = p; p[i].actor != 0) {
            c[i].actor = 0;
            becomes(c);
        }
        const auto& parameters = calls()[p[i].call].parameters;
        for (std::size_t k = 0; k != parameters.size(); ++k) {
            if (parameters[k].is_slot() || p[i].arguments[k] == 0) continue;
            program c = p;
            c[i].arguments[k] = 0;
            becomes(c);
        }
    }
    return p;
}

}  // namespace weft::testing::fuzz
