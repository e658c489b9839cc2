#include "test/refusals/scenes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/io/file.hpp"
#include "weft/io/pipe.hpp"
#include "weft/io/process.hpp"
#include "weft/io/resolver.hpp"
#include "weft/io/signal_set.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/io/tcp_stream.hpp"
#include "weft/io/terminal.hpp"
#include "weft/io/udp_socket.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sync/channel.hpp"
#include "weft/wait/stopped.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace weft::testing::refusals {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 3s;  // of a scene

struct told {
    std::error_code why;
};
struct wrong {};

// The value; an error is thrown.
template <class T>
T got(result<T> r) {
    if (!r) throw told{r.error()};
    if constexpr (!std::is_void_v<T>) return *std::move(r);
}
void got(const transfer_result& t) {
    if (t.error()) throw told{t.error()};
}
void must(bool right) {
    if (!right) throw wrong{};
}

std::span<std::byte> room(std::string& s) { return std::as_writable_bytes(std::span(s)); }

// Read while nothing is refused: a signal to -1 is a signal to every process.
::pid_t this_process = 0;
io_kind the_kind;

// -- the scenes -------------------------------------------------------------------------------

void timer() {
    const auto began = now();
    this_fiber::sleep_for(3ms);
    must(now() - began >= 3ms);
}

void echo() {
    tcp_listener l = got(tcp_listener::bind("127.0.0.1:0"));
    auto server = spawn([&] {
        for (int i = 0; i < 3; ++i) {
            tcp_stream s = got(l.accept());
            std::string b(100, 0);
            while (const std::size_t n = got(s.read(room(b))))
                got(s.write_all(bytes_of(b).first(n)));
        }
    });
    auto client = spawn([&] {
        for (int i = 0; i < 3; ++i) {
            tcp_stream s = got(tcp_stream::connect(l.local_endpoint()));
            for (const std::size_t bytes : {1u, 5000u}) {
                const std::string sent(bytes, 'x');
                std::string back(bytes, 0);
                auto writer = spawn([&] { got(s.write_all(bytes_of(sent))); });
                got(s.read_exact(room(back)));
                writer.get();
                must(back == sent);
            }
        }
    });
    client.get();
    server.get();
}

void datagram() {
    udp_socket a = got(udp_socket::bind("127.0.0.1:0"));
    udp_socket b = got(udp_socket::bind("127.0.0.1:0"));
    std::string s(8, 0);
    auto sender = spawn([&] {
        this_fiber::yield();
        got(a.send_to(bytes_of("ping"), b.local_endpoint()));
    });
    must(got(b.recv_from(room(s))).bytes == 4);
    sender.get();
}

void pipe_between_fibers() {
    auto p = got(pipe::open());
    auto writer = spawn([&] {
        this_fiber::yield();
        got(p.writer.write_all(bytes_of("x")));
    });
    std::string s(4, 0);
    must(got(p.reader.read(room(s))) == 1);
    writer.get();
}

// Wakes that come from another thread, here and there.
void other_thread() {
    channel<int> there(1), back(1);
    std::thread t([&] {
        for (int i = 0; i < 3; ++i) {
            const auto n = there.recv();
            if (!n || !back.send(*n + 1)) return;
        }
    });
    struct joined {
        std::thread& of;
        channel<int>& there;
        ~joined() {
            there.close();
            of.join();
        }
    } const end{t, there};
    for (int i = 0; i < 3; ++i) {
        must(static_cast<bool>(there.send(i)));
        this_fiber::sleep_for(1ms);
        must(back.recv().value_or(-1) == i + 1);
    }
}

void blocking_call() {
    must(run_blocking([] { return 7; }) == 7);
}

// A thread on no loop is served by the library's own.
void plain_thread() {
    auto p = got(pipe::open());
    std::optional<told> error;
    bool right = false;
    std::thread t([&] {
        try {
            p.reader.set_options({.read_timeout = patience});
            std::string s(4, 0);
            right = got(p.reader.read(room(s))) == 1;
        } catch (const told& e) {
            error = e;
        }
    });
    this_fiber::sleep_for(1ms);
    const auto w = p.writer.write_all(bytes_of("x"));
    p.writer.close();
    t.join();
    got(w);
    if (error) throw *error;
    must(right);
}

void bytes_of_a_file() {
    const std::string name = "/dev/shm/weft_refusals_" + std::to_string(this_process) + '_' +
                             std::to_string(steady_now().time_since_epoch().count());
    struct removed {
        const std::string& name;
        ~removed() { ::unlink(name.c_str()); }
    } const end{name};
    file f = got(file::open(name, {.write = true, .create = true}));
    got(f.write_all_at(bytes_of("hello"), 0));
    got(f.sync());
    must(got(f.size()) == 5);
    got(f.resize(4));
    std::string s(8, 0);
    must(got(f.read_at(room(s), 0)) == 4 && s.compare(0, 4, "hell") == 0);
}

void name_of_a_host() { must(!got(resolve("localhost", 7)).empty()); }

void child() {
    process p = got(process::spawn({"/bin/echo", "x"}, {.out = child_io::piped}));
    std::string s(8, 0);
    const std::size_t n = got(p.out().read(room(s)));
    const exit_status e = got(p.wait(after(now(), patience)));
    // The child's call is refused as well, and its status reports that.
    if (!e.ok()) throw told{std::make_error_code(std::errc::no_child_process)};
    must(n == 2);
}

// Children that lead, with limits: what is set in them before their program begins.
void leading_child() {
    for (const ::pid_t group : {child_group::own, child_group::session}) {
        process p = got(process::spawn({"/bin/echo", "x"}, {.in = child_io::discarded,
                                                            .out = child_io::piped,
                                                            .working_directory = "/",
                                                            .group = group,
                                                            .limits = {.files = 64}}));
        std::string s(8, 0);
        const std::size_t n = got(p.out().read(room(s)));
        const exit_status e = got(p.wait(after(now(), patience)));
        if (!e.ok()) throw told{std::make_error_code(std::errc::no_child_process)};
        must(n == 2);
        got(p.kill_group());
    }
}

// Opened while nothing is refused.
int far_side = -1;
std::string line_path(100, 0);

void line() {
    serial_line l = got(serial_line::open(line_path));
    terminal_scope scope = got(terminal_scope::start(l.reader.native_handle()));
    static_cast<void>(got(size_of_terminal(l.reader.native_handle())));
    auto other = spawn([&] {
        this_fiber::yield();
        if (::write(far_side, "x", 1) != 1) throw told{{errno, std::system_category()}};
    });
    std::string s(4, 0);
    must(got(l.reader.read(room(s))) == 1);
    other.get();
    got(scope.end());
}

void signal() {
    signal_set s = got(signal_set::open({SIGUSR1}));
    if (::kill(this_process, SIGUSR1) != 0) throw told{{errno, std::system_category()}};
    must(got(s.wait(after(now(), patience))).number == SIGUSR1);
}

// A loop in a foreign loop, which is notified by a descriptor.
void embedded() {
    std::optional<told> error;
    bool right = false;
    std::thread t([&] {
        try {
            loop l(make_io_driver(the_kind));
            const int handle = l.native_handle();
            if (handle < 0) throw told{std::make_error_code(std::errc::too_many_files_open)};
            fiber f(
                [&] {
                    auto ends = got(pipe::open());
                    auto writer = spawn([&] {
                        this_fiber::sleep_for(1ms);
                        got(ends.writer.write_all(bytes_of("x")));
                    });
                    std::string s(1, 0);
                    got(ends.reader.read_exact(room(s)));
                    writer.get();
                    right = true;
                },
                {.on = l});
            for (const auto end = steady_now() + patience; !f.done() && steady_now() < end;) {
                while (steady_now() < end && l.run_once(steady_now())) {
                }
                ::pollfd p = {handle, POLLIN, 0};
                if (::poll(&p, 1, 1) < 0) std::this_thread::sleep_for(1ms);
            }
            if (!f.done()) f.request_stop();
            l.run();
            static_cast<void>(f.join());
        } catch (const told& e) {
            error = e;
        } catch (const std::exception&) {
            error = told{std::make_error_code(std::errc::operation_not_permitted)};
        }
    });
    t.join();
    if (error) throw *error;
    must(right);
}

// Its workers have drivers of their own, and its fibers stacks that come and go.
void workers() {
    pool p(2);
    std::vector<join_handle<int>> all;
    for (int i = 0; i < 40; ++i)
        all.push_back(spawn(
            [i] {
                auto ends = got(pipe::open());
                auto writer = spawn([&] {
                    this_fiber::sleep_for(1ms);
                    got(ends.writer.write_all(bytes_of("x")));
                });
                std::string s(1, 0);
                got(ends.reader.read_exact(room(s)));
                writer.get();
                return i;
            },
            {.on = p}));
    std::optional<told> error;
    for (int i = 0; i < 40; ++i) try {
            must(all[static_cast<std::size_t>(i)].get() == i);
        } catch (const told& e) {
            error = e;
        }
    if (error) throw *error;
}

struct scene {
    const char* name;
    void (*play)();
};
constexpr scene scenes[] = {
    {"timer", timer},
    {"echo", echo},
    {"datagram", datagram},
    {"pipe", pipe_between_fibers},
    {"other_thread", other_thread},
    {"blocking", blocking_call},
    {"plain_thread", plain_thread},
    {"file", bytes_of_a_file},
    {"name", name_of_a_host},
    {"child", child},
    {"leading_child", leading_child},
    {"line", line},
    {"signal", signal},
    {"embedded", embedded},
    {"workers", workers},
    {"timer_again", timer},
};
static_assert(std::size(scenes) <= report::most_scenes);

outcome outcome_of(void (*play)()) {
    const timeout_scope limit(patience);
    try {
        play();
        return outcome::served;
    } catch (const told& e) {
        return limit.has_expired() ? outcome::timed_out : outcome::told;
    } catch (const stopped&) {
        return limit.has_expired() ? outcome::timed_out : outcome::wrong;
    } catch (const std::system_error&) {
        return outcome::told;
    } catch (const std::bad_alloc&) {
        return outcome::told;
    } catch (const wrong&) {
        return outcome::wrong;
    }
}

}  // namespace

const char* name_of_scene(int i) noexcept { return scenes[i].name; }
int scene_count() noexcept { return static_cast<int>(std::size(scenes)); }

void prepare() noexcept {
    this_process = ::getpid();
    int near_side = -1;  // stays, so that the line does
    if (::openpty(&far_side, &near_side, line_path.data(), nullptr, nullptr) == 0)
        line_path.resize(line_path.find('\0'));
    ::signal(SIGUSR1, SIG_IGN);  // a pending signal without a wait for it does no harm
}

void play_all(io_kind kind, report& r) {
    the_kind = kind;
    loop l(make_io_driver(kind));
    fiber f(
        [&] {
            for (int i = 0; i < scene_count(); ++i) r.of[i] = outcome_of(scenes[i].play);
        },
        {.on = l});
    l.run();
}

}  // namespace weft::testing::refusals
