#include "options.hpp"

#include <sys/resource.h>

#include <charconv>
#include <string>
#include <string_view>

namespace echo {

const char* const help_text =
    "usage: echo [options]\n"
    "\n"
    "An echo server on loopback in every style of coroutine that weft has, each under a client\n"
    "that verifies every byte and hangs up at random. Exit status: 0 passed, 1 failed, 2 bad\n"
    "input.\n"
    "\n"
    "  --style NAME[,NAME]  switch, stackful, shared, fiber.epoll, fiber.io_uring, task.epoll,\n"
    "                       task.io_uring; may be repeated (all that the system has)\n"
    "  --connections N      connections at a time (200)\n"
    "  --seconds S          measured time per style (2)\n"
    "  --port P             port on 127.0.0.1, 0 for any free one (0)\n"
    "  --seed N             of the client's random choices (1)\n"
    "  --serve STYLE        only serve, until Ctrl-C; try it with: nc 127.0.0.1 PORT\n"
    "  --help               this text\n";

namespace {

template <class Number>
Number parse_number(std::string_view option, std::string_view text, Number least, Number most) {
    Number n{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    if (whole && n >= least && n <= most) return n;
    const auto shown = [](Number limit) {
        std::string s = std::to_string(limit);
        if (s.find('.') != s.npos) s.erase(s.find_last_not_of("0.") + 1);
        return s;
    };
    throw bad_input(std::string(option) + " takes a number from " + shown(least) + " to " +
                    shown(most) + ", not \"" + std::string(text) + "\"");
}

const style* parse_style(std::string_view name) {
    if (const style* s = find_style(name)) {
        const char* why = refusal_of(*s);
        if (why == nullptr) return s;
        throw bad_input(std::string(name) + ": no io_uring here (" + why + ")");
    }
    std::string known;
    for (const style& s : all_styles()) known += (known.empty() ? "" : ", ") + std::string(s.name);
    throw bad_input("unknown style \"" + std::string(name) + "\" (there are " + known + ")");
}

void parse_styles(std::string_view names, std::vector<const style*>& out) {
    for (;;) {
        const std::size_t comma = names.find(',');
        out.push_back(parse_style(names.substr(0, comma)));
        if (comma == names.npos) return;
        names.remove_prefix(comma + 1);
    }
}

}  // namespace

options parse_options(int argc, char** argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        const auto value = [&]() -> std::string_view {
            if (i + 1 == argc) throw bad_input(std::string(option) + " needs a value");
            return argv[++i];
        };
        if (option == "--help") {
            o.help = true;
        } else if (option == "--style") {
            parse_styles(value(), o.styles);
        } else if (option == "--serve") {
            o.serve = parse_style(value());
        } else if (option == "--connections") {
            o.connections = parse_number(option, value(), 1u, 1'000'000u);
        } else if (option == "--seconds") {
            o.seconds = parse_number(option, value(), 0.1, 86'400.0);
        } else if (option == "--port") {
            o.port = parse_number<std::uint16_t>(option, value(), 0, 65'535);
        } else if (option == "--seed") {
            o.seed = parse_number<std::uint64_t>(option, value(), 0, ~0ull);
        } else {
            throw bad_input("unknown option \"" + std::string(option) + "\" (see --help)");
        }
    }
    if (o.serve != nullptr && !o.styles.empty()) {
        throw bad_input("--serve names the style itself; leave --style out");
    }
    if (o.styles.empty()) {
        for (const style& s : all_styles()) o.styles.push_back(&s);
    }
    return o;
}

void allow_descriptors(unsigned connections) {
    // Twice, because the next client may connect before the server sees that the last is gone. The
    // rest is for the standard streams, the pipes, the driver and the listener.
    const rlim_t needed = 2 * rlim_t{connections} + 32;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < needed) {
        throw bad_input(std::to_string(connections) + " connections need " +
                        std::to_string(needed) + " file descriptors, but RLIMIT_NOFILE allows " +
                        std::to_string(limit.rlim_max) + " (ulimit -n)");
    }
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace echo
