#include "test/hook/fuzz/search.hpp"

#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "test/hook/fuzz/differs.hpp"
#include "test/hook/fuzz/isolated.hpp"

namespace weft::testing::fuzz {
namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::uint64_t batch = 100;
constexpr auto silence = 20s;  // and a worker hangs
constexpr auto alone_limit = 180s;
constexpr auto shrinking_limit = 5s;
constexpr auto shrinking_time = 30s;
constexpr auto patience = 400s;  // for the runs still in progress: more than they take
constexpr unsigned most_finders = 2;
constexpr unsigned shrinking_slowness = 4;
const std::string crash = "crash by signal ";

struct message {
    enum what : std::uint64_t { begins, differs, unstable, done } what;
    std::uint64_t seed;
    std::uint64_t kind = 0;  // of a difference: its name, as a number
};

struct worker {
    int pid = -1;
    int from = -1;
    std::uint64_t last = 0;  // the program that it runs
    std::uint64_t next = 0;  // where its share continues after that
    std::uint64_t end = 0;
    clock::time_point heard;
};

// It makes a program that differs small.
struct finder {
    int pid;
    int from;
    std::uint64_t seed;
    std::uint64_t kind;
    std::string text;
};

struct suspicion {
    std::uint64_t seed;
    std::uint64_t kind;
};

// How often each difference was found, by its name as a number. Two faults may share a name, but
// not many.
using kinds_seen = std::map<std::uint64_t, unsigned>;
constexpr unsigned often_enough = 2;
constexpr unsigned most_tries = 10;  // of a kind that is not seen again

// If an answer is planted, only its own differences are reported.
bool counts(const std::string& name, int planted) {
    if (planted < 0) return !name.empty();
    return name.starts_with(calls()[static_cast<std::size_t>(planted)].name + std::string(": "));
}

void work(int to, std::uint64_t seed, std::uint64_t end, int planted, kinds_seen kinds) {
    const auto tell = [to](message m) {
        if (::write(to, &m, sizeof m) != sizeof m) ::_exit(1);
    };
    for (; seed != end; ++seed) {
        tell({message::begins, seed});
        const auto is_known = [&](const std::string& name) {
            const auto known = kinds.find(std::hash<std::string>{}(name));
            return (known != kinds.end() && known->second >= often_enough) ||
                   !counts(name, planted);
        };
        const finding f = look_for_difference(generate(seed), planted, 0, is_known);
        if (f.what == verdict::differs && counts(f.name, planted)) {
            const std::uint64_t kind = std::hash<std::string>{}(f.name);
            ++kinds[kind];
            tell({message::differs, seed, kind});
        }
        if (f.what == verdict::unstable) tell({message::unstable, seed});
    }
    tell({message::done, end});
    ::_exit(0);
}

worker begun(std::uint64_t seed, std::uint64_t end, int planted, const kinds_seen& kinds) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    worker w;
    w.pid = ::fork();
    if (w.pid < 0) std::abort();
    if (w.pid == 0) {
        ::close(ends[0]);
        begin_child();
        work(ends[1], seed, end, planted, kinds);
    }
    ::close(ends[1]);
    w.from = ends[0];
    w.last = w.next = seed;
    w.end = end;
    w.heard = clock::now();
    return w;
}

class searcher {
public:
    explicit searcher(const search_options& o)
        : options_(o), next_(o.seed), began_(clock::now()), said_(began_) {}

    search_result run() {
        for (;;) {
            if (is_over()) stop_workers();
            while (workers_.size() < options_.jobs && !is_over() && has_more()) begin_one();
            begin_finders();
            if (workers_.empty() && finders_.empty()) break;
            if (!workers_.empty()) last_work_ = clock::now();
            if (clock::now() - last_work_ > patience) break;
            if (result_.differences >= options_.most) break;
            listen();
            if (options_.tells && clock::now() - said_ > 10s) say_how_far();
        }
        for (const finder& f : finders_) {
            ::kill(f.pid, SIGKILL);
            ::waitpid(f.pid, nullptr, 0);
            ::close(f.from);
            suspected_.push_back({f.seed, f.kind});
        }
        for (const suspicion& s : suspected_) {
            ++result_.unstable;
            if (options_.tells)
                std::printf("seed %llu was not looked at to the end\n",
                            static_cast<unsigned long long>(s.seed));
        }
        return result_;
    }

private:
    bool has_more() const { return next_ != options_.seed + options_.programs; }
    bool is_over() const {
        return result_.differences >= options_.most ||
               (options_.seconds > 0 &&
                clock::now() - began_ > std::chrono::duration<double>(options_.seconds));
    }
    void begin_one() {
        const std::uint64_t end = std::min(next_ + batch, options_.seed + options_.programs);
        workers_.push_back(begun(next_, end, options_.planted, kinds_));
        next_ = end;
    }
    void stop_workers() {
        for (worker& w : workers_) {
            end_child(w.pid);
            ::close(w.from);
        }
        workers_.clear();
    }

    void listen() {
        std::vector<::pollfd> all;
        for (const worker& w : workers_) all.push_back({w.from, POLLIN, 0});
        for (const finder& f : finders_) all.push_back({f.from, POLLIN, 0});
        const std::size_t count = workers_.size();
        ::poll(all.data(), all.size(), 500);
        for (std::size_t i = all.size(); i-- > count;)
            if (all[i].revents != 0) hear_finder(i - count);
        for (std::size_t i = count; i-- > 0;) {
            if (all[i].revents != 0)
                hear(i);
            else if (clock::now() - workers_[i].heard > silence)
                lose(i);
        }
    }
    void hear(std::size_t i) {
        message m;
        const ::ssize_t n = ::read(workers_[i].from, &m, sizeof m);
        if (n != sizeof m) return lose(i);
        worker& w = workers_[i];
        w.heard = clock::now();
        switch (m.what) {
            case message::begins:
                w.last = m.seed;
                w.next = m.seed + 1;
                ++result_.programs;
                break;
            case message::differs:
                found(m.seed, m.kind);
                break;
            case message::unstable:
                ++result_.unstable;
                break;
            case message::done:
                end_child(w.pid);
                ::close(w.from);
                workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
                return;
        }
    }
    // It died, or hangs: by the program that it ran last. The rest of its share is another's.
    void lose(std::size_t i) {
        const worker w = workers_[i];
        end_child(w.pid);
        ::close(w.from);
        workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
        found(w.last, 0);
        if (w.next != w.end && !is_over())
            workers_.push_back(begun(w.next, w.end, options_.planted, kinds_));
    }

    void found(std::uint64_t seed, std::uint64_t kind) {
        if (kinds_[kind]++ < (kind == 0 ? most_tries : often_enough))
            suspected_.push_back({seed, kind});
    }
    // A process of its own examines each difference, which takes seconds. Few do so at a time: the
    // more there are, the slower is each.
    void begin_finders() {
        while (finders_.size() < most_finders && !suspected_.empty()) {
            const suspicion s = suspected_.front();
            suspected_.erase(suspected_.begin());
            int ends[2];
            if (::pipe(ends) != 0) std::abort();
            const int pid = ::fork();
            if (pid < 0) std::abort();
            if (pid == 0) {
                ::close(ends[0]);
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                const std::string words = least_of(s.seed);
                if (::write(ends[1], words.data(), words.size()) < 0) ::_exit(1);
                ::_exit(0);
            }
            ::close(ends[1]);
            finders_.push_back({pid, ends[0], s.seed, s.kind, {}});
        }
    }
    // The name, the program, the transcripts.
    std::string least_of(std::uint64_t seed) {
        const program p = generate(seed);
        const told t = look_surely(p, options_.planted);
        if (!counts(t.name, options_.planted)) return "\n\n";
        const auto until = clock::now() + shrinking_time;
        const program least = shrunk(p, [&](const program& c) {
            return clock::now() < until &&
                   counts(look_alone(c, options_.planted, shrinking_slowness).name,
                          options_.planted);
        });
        const told u = look_surely(least, options_.planted);
        if (!counts(u.name, options_.planted)) return t.name + "\n" + text_of(p) + "\n" + t.text;
        return u.name + "\n" + text_of(least) + "\n" + u.text;
    }
    void hear_finder(std::size_t i) {
        finder& f = finders_[i];
        char room[4096];
        const ::ssize_t n = ::read(f.from, room, sizeof room);
        if (n > 0) {
            f.text.append(room, static_cast<std::size_t>(n));
            return;
        }
        ::close(f.from);
        ::waitpid(f.pid, nullptr, 0);
        const finder done = f;
        finders_.erase(finders_.begin() + static_cast<std::ptrdiff_t>(i));
        const auto name_end = done.text.find('\n');
        const auto end = done.text.find('\n', name_end + 1);
        if (end == done.text.npos || name_end == 0) {
            ++result_.unstable;
            if (options_.tells)
                std::printf("seed %llu %s\n", static_cast<unsigned long long>(done.seed),
                            done.kind == 0 ? "ended its worker, and did so not again"
                                           : "differed, and did so not each time");
            // Another of its kind may do so each time.
            if (++retracted_[done.kind] < most_tries) --kinds_[done.kind];
            return;
        }
        const std::string name = done.text.substr(0, name_end);
        const std::string text = done.text.substr(name_end + 1, end - name_end - 1);
        tell_of(done.seed, name, parse(text).value_or(program{}), done.text.substr(end + 1));
    }
    void tell_of(std::uint64_t seed, const std::string& name, const program& p,
                 const std::string& text) {
        if (!names_.insert(name).second || result_.differences >= options_.most) return;
        if (is_known(name)) {
            ++result_.known;
            if (options_.tells) std::printf("known: %s\n", name.c_str());
            return;
        }
        if (result_.differences++ == 0) result_.first = p;
        if (!options_.tells) return;
        std::printf("DIFFERENCE (seed %llu): %s\n  --replay '%s'\n%s",
                    static_cast<unsigned long long>(seed), name.c_str(), text_of(p).c_str(),
                    text.c_str());
        std::fflush(stdout);
    }
    bool is_known(const std::string& name) const noexcept {
        return std::any_of(options_.known.begin(), options_.known.end(), [&](const auto& pattern) {
            return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
        });
    }
    void say_how_far() {
        said_ = clock::now();
        const double s = std::chrono::duration<double>(said_ - began_).count();
        std::printf("%llu programs, %.0f a second; %u differences, %llu unstable\n",
                    static_cast<unsigned long long>(result_.programs),
                    static_cast<double>(result_.programs) / s, result_.differences,
                    static_cast<unsigned long long>(result_.unstable));
        std::fflush(stdout);
    }

    const search_options options_;
    std::uint64_t next_;
    const clock::time_point began_;
    clock::time_point said_;
    clock::time_point last_work_ = clock::now();
    std::vector<worker> workers_;
    std::vector<finder> finders_;
    kinds_seen kinds_;
    kinds_seen retracted_;
    std::vector<suspicion> suspected_;
    std::set<std::string> names_;
    search_result result_;
};

}  // namespace

told look_alone(const program& p, int planted, unsigned slowness) {
    const isolated_outcome o = isolated(
        [&] {
            const finding f = look_for_difference(p, planted, slowness);
            return f.what == verdict::differs ? f.name + "\n" + f.text : std::string();
        },
        slowness == shrinking_slowness ? shrinking_limit : alone_limit);
    switch (o.how) {
        case isolated_outcome::crashed:
            return {crash + std::to_string(o.signal), ""};
        case isolated_outcome::hung:
            return {"hangs", ""};
        case isolated_outcome::ended:
            break;
    }
    const auto end = std::min(o.text.find('\n'), o.text.size());
    return {o.text.substr(0, end), o.text.substr(std::min(end + 1, o.text.size()))};
}

told look_surely(const program& p, int planted) {
    told first;
    for (unsigned i = 0; i != looks_that_decide; ++i) {
        const told t = look_alone(p, planted, slowest);
        if (t.name.starts_with(crash)) return t;
        if (i == 0) first = t;
        if (i != 0 && t.name != first.name) first = {};
    }
    return first;
}

search_result search(const search_options& o) { return searcher(o).run(); }

bool replay(const program& p, int planted) {
    for (std::size_t i = 0; i != p.size(); ++i)
        std::printf("  %2zu: %s\n", i, text_of(p[i]).c_str());
    const told t = look_alone(p, planted);
    std::printf("%s\n%s", t.name.empty() ? "the same" : t.name.c_str(), t.text.c_str());
    return !t.name.empty();
}

}  // namespace weft::testing::fuzz
