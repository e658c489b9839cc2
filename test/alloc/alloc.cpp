#include "test/alloc/alloc.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <system_error>

#include "test/alloc/failing_calls.hpp"

namespace weft::testing::alloc {

namespace {

// Where the library ends the program with a message, because it has no other choice.
constexpr const char* allowed_ends[] = {
    "Fatal glibc error: failed to register TLS destructor",  // a thread's first use of the library
    "weft: out of memory: ",  // a wake, a kill and a yield cannot report it
};

constexpr unsigned most_seconds = 30;  // of one child
constexpr int repeats = 3;
constexpr std::uint64_t all_up_to = 400;  // of more calls, each of those and some of the others

enum class outcome { done, told, strange };

outcome once(const scenario& s) {
    try {
        s.run();
        return outcome::done;
    } catch (const told&) {
        return outcome::told;
    } catch (const std::bad_alloc&) {
        return outcome::told;
    } catch (const std::system_error&) {
        return outcome::told;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "throws %s", e.what());
    } catch (...) {
        std::fprintf(stderr, "throws what is no std::exception");
    }
    return outcome::strange;
}

[[noreturn]] void end_child(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::fflush(stderr);
    ::_exit(1);
}

void must_work(const scenario& s) {
    if (once(s) != outcome::done) end_child(": it does not work any more, with memory");
}

struct usual {
    std::uint64_t calls = 0;  // of the kind, in a first run
    std::int64_t blocks = 0;  // blocks that are still allocated after two more runs
};

// In the child: the law, for one call.
void check(const scenario& s, call_kind kind, std::uint64_t n, const usual& u) {
    const std::int64_t begun = lent().blocks;
    fail_call(kind, n);
    const outcome first = once(s);
    end_failing();
    if (first == outcome::strange) end_child("");
    must_work(s);
    must_work(s);
    const std::int64_t cold = lent().blocks - begun;
    // Where a mapping fails another may be made in its stead, with books of its own.
    if (!s.threads && kind == call_kind::malloc && cold > u.blocks)
        end_child(
            ("loses " + std::to_string(cold - u.blocks) + " blocks in its first run").c_str());
    lent_memory before = lent();
    int grown = 0;
    for (int i = 0; i < repeats; ++i) {
        fail_call(kind, n);
        const outcome again = once(s);
        end_failing();
        if (again == outcome::strange) end_child("");
        must_work(s);
        const lent_memory now = lent();
        grown += now.blocks > before.blocks || now.mapped_bytes > before.mapped_bytes;
        before = now;
    }
    if (grown == repeats) end_child("loses memory each time");
}

struct child_end {
    bool well = false;
    std::string said;
};

// Runs `f` in a child; what it writes is its report.
template <class F>
child_end in_child(F f) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const ::pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]), ::close(ends[1]);
        ::alarm(most_seconds);
        f();
        std::fflush(stderr);
        ::_exit(0);
    }
    ::close(ends[1]);
    child_end e;
    char some[512];
    for (ssize_t n; (n = ::read(ends[0], some, sizeof some)) > 0;)
        e.said.append(some, static_cast<std::size_t>(n));
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    e.well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFSIGNALED(status)) {
        const bool aloud =
            WTERMSIG(status) == SIGABRT && std::ranges::any_of(allowed_ends, [&](const char* line) {
                return e.said.find(line) != std::string::npos;
            });
        e.well = aloud;
        e.said += std::string(" [") + ::strsignal(WTERMSIG(status)) + "]";
    }
    while (!e.said.empty() && e.said.back() == '\n') e.said.pop_back();
    return e;
}

usual look(const scenario& s, call_kind kind) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const child_end e = in_child([&] {
        const std::int64_t begun = lent().blocks;
        fail_call(kind, 0);
        must_work(s);
        usual u{.calls = end_failing()};
        must_work(s);
        must_work(s);
        u.blocks = lent().blocks - begun;
        if (::write(ends[1], &u, sizeof u) != sizeof u) end_child("write");
    });
    usual u;
    if (!e.well || ::read(ends[0], &u, sizeof u) != sizeof u) {
        std::printf("%s: does not work with memory: %s\n", s.name, e.said.c_str());
        std::exit(1);
    }
    ::close(ends[0]), ::close(ends[1]);
    return u;
}

}  // namespace

void failed(const char* condition, const char* file, int line) noexcept {
    std::fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
    std::abort();
}

int run_all(int argc, char** argv, std::span<const scenario> all) {
    std::string section, only_kind;
    std::uint64_t only_call = 0;
    for (int i = 1; i < argc; i += 2) {
        const std::string option = argv[i];
        const char* const value = argv[i + 1];  // null behind the last
        if (value != nullptr && option == "--section") {
            section = value;
        } else if (value != nullptr && option == "--kind") {
            only_kind = value;
        } else if (value != nullptr && option == "--call") {
            only_call = std::strtoull(value, nullptr, 10);
        } else {
            std::fprintf(stderr, "usage: %s [--section NAME] [--kind malloc] [--call N]\n",
                         argv[0]);
            return 2;
        }
    }
    int faults = 0;
    for (const scenario& s : all) {
        if (!section.empty() && section != s.name) continue;
        for (int k = 0; k < 4; ++k) {
            const auto kind = static_cast<call_kind>(k);
            if (!only_kind.empty() && only_kind != call_names[k]) continue;
            if (only_call != 0) {  // for a debugger: in this process
                check(s, kind, only_call, {.blocks = INT64_MAX});
                continue;
            }
            const usual u = look(s, kind);
            // One more: some call only when another has failed.
            const std::uint64_t step = u.calls > all_up_to ? u.calls / all_up_to + 1 : 1;
            for (std::uint64_t n = 1; n <= u.calls + 1; n += n < all_up_to / 2 ? 1 : step) {
                const child_end e = in_child([&] { check(s, kind, n, u); });
                if (e.well) continue;
                ++faults;
                std::printf("%s: %s %llu of %llu: %s\n", s.name, call_names[k],
                            static_cast<unsigned long long>(n),
                            static_cast<unsigned long long>(u.calls), e.said.c_str());
                std::fflush(stdout);
            }
            std::printf("%s: %llu calls of %s\n", s.name, static_cast<unsigned long long>(u.calls),
                        call_names[k]);
            std::fflush(stdout);
        }
    }
    return faults == 0 ? 0 : 1;
}

}  // namespace weft::testing::alloc
