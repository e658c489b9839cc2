#include "weft/io/terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>

#include "weft/base/detail/list.hpp"
#include "weft/base/detail/system_mutex.hpp"
#include "weft/io/detail/c_string.hpp"
#include "weft/io/owned_number.hpp"

namespace weft {
namespace detail {

// The state of a scope.
struct kept_modes : list_node<> {
    owned_number number;  // a duplicate of its own
    ::pid_t owner = 0;    // the process that has changed them
    ::termios before{};
    ::termios during{};
    bool ended = false;  // under the lock
};

}  // namespace detail

namespace {

using detail::kept_modes;

result<void> told_by(int r) noexcept {
    if (r == 0) return {};
    return failure(std::error_code(errno, std::system_category()));
}

// The active scopes, for exit(). It is never destroyed: exit() may leave fibers behind.
struct all_scopes {
    const ::pid_t owner = ::getpid();
    detail::system_mutex lock;
    detail::list<kept_modes> standing;  // the oldest first

    static all_scopes& here() noexcept {
        alignas(all_scopes) static std::byte place[sizeof(all_scopes)];
        static all_scopes* const all = [] {
            auto* const a = ::new (static_cast<void*>(place)) all_scopes;
            static_cast<void>(std::atexit([] { here().put_back_all(); }));
            return a;
        }();
        return *all;
    }

    void add(kept_modes& m) noexcept {
        const std::lock_guard held(lock);
        standing.push_back(m);
    }
    result<void> put_back(kept_modes& m) noexcept {
        const std::lock_guard held(lock);
        if (std::exchange(m.ended, true)) return {};
        detail::list<kept_modes>::remove(m);
        return put_back_now(m);
    }
    void put_back_all() noexcept {
        // In a child of fork() a thread that does not exist may hold the lock.
        std::unique_lock held(lock, std::defer_lock);
        if (::getpid() == owner)
            held.lock();
        else if (!held.try_lock())
            return;
        while (!standing.empty()) {
            kept_modes& m = *standing.back();
            detail::list<kept_modes>::remove(m);
            m.ended = true;
            static_cast<void>(put_back_now(m));
        }
    }

private:
    static result<void> put_back_now(kept_modes& m) noexcept;
};

// This program's terminal, while another program is in its foreground: to change its modes would
// stop this program (SIGTTOU).
bool is_anothers(int number) noexcept {
    return ::tcgetsid(number) == ::getsid(0) && ::tcgetpgrp(number) != ::getpgrp();
}

result<void> set_modes(int number, const ::termios& modes) noexcept {
    if (is_anothers(number)) return failure(std::errc::device_or_resource_busy);
    int r;
    do {
        r = ::tcsetattr(number, TCSANOW, &modes);
    } while (r != 0 && errno == EINTR);
    return told_by(r);
}

result<void> all_scopes::put_back_now(kept_modes& m) noexcept {
    const owned_number number = std::move(m.number);
    if (m.owner != ::getpid()) return {};
    return set_modes(number.get(), m.before);
}

::termios modes_for(::termios modes, terminal_mode to) noexcept {
    switch (to) {
        case terminal_mode::raw:
            ::cfmakeraw(&modes);
            break;
        case terminal_mode::keys:
            modes.c_lflag &= ~static_cast<::tcflag_t>(ICANON | ECHO);
            break;
        case terminal_mode::hidden:
            modes.c_lflag &= ~static_cast<::tcflag_t>(ECHO);
            modes.c_lflag |= ECHONL;
            break;
    }
    if (to != terminal_mode::hidden) {  // a read returns what there is, from one byte on
        modes.c_cc[VMIN] = 1;
        modes.c_cc[VTIME] = 0;
    }
    return modes;
}

struct speed {
    unsigned baud;
    ::speed_t code;
};
#define SPEED(n) {n, B##n}
constexpr speed speeds[] = {
    SPEED(50),      SPEED(75),      SPEED(110),     SPEED(134),     SPEED(150),     SPEED(200),
    SPEED(300),     SPEED(600),     SPEED(1200),    SPEED(1800),    SPEED(2400),    SPEED(4800),
    SPEED(9600),    SPEED(19200),   SPEED(38400),   SPEED(57600),   SPEED(115200),  SPEED(230400),
    SPEED(460800),  SPEED(500000),  SPEED(576000),  SPEED(921600),  SPEED(1000000), SPEED(1152000),
    SPEED(1500000), SPEED(2000000), SPEED(2500000), SPEED(3000000), SPEED(3500000), SPEED(4000000),
};
#undef SPEED

constexpr ::tcflag_t form_flags = CSIZE | CSTOPB | PARENB | PARODD | CRTSCTS;
constexpr ::tcflag_t flow_flags = IXON | IXOFF;

// False: there is no such line.
bool describe_line(const serial_options& o, ::termios& modes) noexcept {
    constexpr ::tcflag_t sizes[] = {CS5, CS6, CS7, CS8};
    const auto* const s = std::ranges::find(speeds, o.baud, &speed::baud);
    if (s == std::end(speeds) || o.data_bits < 5 || o.data_bits > 8 || o.stop_bits < 1 ||
        o.stop_bits > 2)
        return false;
    ::cfmakeraw(&modes);
    ::cfsetispeed(&modes, s->code);
    ::cfsetospeed(&modes, s->code);
    modes.c_cflag &= ~form_flags;
    modes.c_cflag |= CLOCAL | CREAD | sizes[o.data_bits - 5];
    if (o.stop_bits == 2) modes.c_cflag |= CSTOPB;
    if (o.parity != serial_parity::none) modes.c_cflag |= PARENB;
    if (o.parity == serial_parity::odd) modes.c_cflag |= PARODD;
    if (o.parity != serial_parity::none) modes.c_iflag |= INPCK;
    if (o.flow == serial_flow::hardware) modes.c_cflag |= CRTSCTS;
    modes.c_iflag &= ~flow_flags;
    if (o.flow == serial_flow::software) modes.c_iflag |= flow_flags;
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    return true;
}

// The system does what it can of what it is asked, and reports success.
bool is_alike(const ::termios& a, const ::termios& b) noexcept {
    return ((a.c_cflag ^ b.c_cflag) & form_flags) == 0 &&
           ((a.c_iflag ^ b.c_iflag) & flow_flags) == 0 && ::cfgetispeed(&a) == ::cfgetispeed(&b) &&
           ::cfgetospeed(&a) == ::cfgetospeed(&b);
}

}  // namespace

result<terminal_scope> terminal_scope::start(int number, terminal_mode mode) noexcept {
    std::unique_ptr<kept_modes> kept(new (std::nothrow) kept_modes);
    if (kept == nullptr) return failure(std::errc::not_enough_memory);
    if (auto r = told_by(::tcgetattr(number, &kept->before)); !r) return failure(r.error());
    kept->number.reset(::fcntl(number, F_DUPFD_CLOEXEC, 3));
    if (!kept->number) return failure(std::error_code(errno, std::system_category()));
    kept->owner = ::getpid();
    kept->during = modes_for(kept->before, mode);
    if (auto r = set_modes(kept->number.get(), kept->during); !r) return failure(r.error());
    all_scopes::here().add(*kept);
    return terminal_scope(std::move(kept));
}

terminal_scope::terminal_scope(std::unique_ptr<kept_modes> k) noexcept : kept_(std::move(k)) {}
terminal_scope::terminal_scope(terminal_scope&&) noexcept = default;

terminal_scope& terminal_scope::operator=(terminal_scope&& other) noexcept {
    if (this != &other) {
        static_cast<void>(end());
        kept_ = std::move(other.kept_);
    }
    return *this;
}

terminal_scope::~terminal_scope() { static_cast<void>(end()); }

result<void> terminal_scope::again() noexcept {
    if (kept_ == nullptr) return failure(std::errc::bad_file_descriptor);
    const std::lock_guard held(all_scopes::here().lock);
    if (kept_->ended) return failure(errc::closed);
    return set_modes(kept_->number.get(), kept_->during);
}

result<void> terminal_scope::end() noexcept {
    if (kept_ == nullptr) return {};
    return all_scopes::here().put_back(*kept_);
}

result<terminal_size> size_of_terminal(int number) noexcept {
    ::winsize s{};
    if (auto r = told_by(::ioctl(number, TIOCGWINSZ, &s)); !r) return failure(r.error());
    return terminal_size{s.ws_col, s.ws_row};
}

result<void> resize_terminal(int number, terminal_size size) noexcept {
    constexpr unsigned most = 0xffff;
    if (size.columns > most || size.rows > most) return failure(std::errc::invalid_argument);
    ::winsize s{};
    s.ws_col = static_cast<unsigned short>(size.columns);
    s.ws_row = static_cast<unsigned short>(size.rows);
    return told_by(::ioctl(number, TIOCSWINSZ, &s));
}

result<serial_line> serial_line::open(const std::string& path, const serial_options& o) noexcept {
    ::termios modes{};
    if (!detail::is_c_string(path) || !describe_line(o, modes))
        return failure(std::errc::invalid_argument);
    owned_number one;
    do {
        one.reset(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    } while (!one && errno == EINTR);
    if (!one) return failure(std::error_code(errno, std::system_category()));
    if (auto r = told_by(::tcgetattr(one.get(), &modes)); !r) return failure(r.error());
    describe_line(o, modes);
    if (auto r = set_modes(one.get(), modes); !r) {
        const bool is_refused = r.error() == std::errc::invalid_argument;
        return failure(is_refused ? std::make_error_code(std::errc::not_supported) : r.error());
    }
    ::termios now{};
    if (auto r = told_by(::tcgetattr(one.get(), &now)); !r) return failure(r.error());
    if (!is_alike(modes, now)) return failure(std::errc::not_supported);
    owned_number other(::fcntl(one.get(), F_DUPFD_CLOEXEC, 3));
    if (!other) return failure(std::error_code(errno, std::system_category()));
    auto reader = pipe_reader::adopt(one.release());
    auto writer = pipe_writer::adopt(other.release());
    if (!reader || !writer) return failure(reader ? writer.error() : reader.error());
    return serial_line{*std::move(reader), *std::move(writer)};
}

}  // namespace weft
