// file_server: the files of a directory over HTTP/1.1, a fiber for each connection.
//
// Shows: a file sent without a copy (send_file); a directory read in batches; a time limit for each
// request and for each MiB of an answer; a bound on the connections that are served at once; a
// system call that weft has no name for, made on a thread that may block (weft::run_blocking).
//
//   build/release/examples/file_server . 127.0.0.1:8080 &  curl http://127.0.0.1:8080/README.md
//
// The program prints the address it listens on, as a URL; port 0 selects a free port. The third
// argument is the time limit in seconds, 30 by default. The fourth argument is the number of
// connections that are served at once, 1000 by default: further connections wait to be accepted.
// The methods are GET and HEAD. No path leads out of the directory, neither by ".." nor by a
// symbolic link, even one that is made meanwhile (openat2, RESOLVE_BENEATH). The program runs until
// a signal ends it.

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "examples/file_server/request.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/directory.hpp"
#include "weft/io/file.hpp"
#include "weft/io/owned_number.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/sync/counting_semaphore.hpp"

namespace {

using file_server::request;

// The file that a path leads to, or the error.
struct opened {
    weft::owned_number number;
    struct ::stat status = {};
    int error = 0;
};
opened open_beneath(int directory, const std::string& path) {
    return weft::run_blocking([&] {
        ::open_how how = {};
        how.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;  // no wait for the other end of a FIFO
        how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
        const char* const name = path.empty() ? "." : path.c_str();
        opened o;
        o.number.reset(static_cast<int>(::syscall(SYS_openat2, directory, name, &how, sizeof how)));
        if (!o.number || ::fstat(o.number.get(), &o.status) != 0) o.error = errno;
        return o;
    });
}

class answers {
public:
    answers(weft::tcp_stream& to, const request& r) : to_(to), r_(r) {}

    // Each function returns false if no request follows on the connection.
    bool say(std::string_view status, std::string_view body, std::string_view more = {}) {
        const std::string h = head(status, body.size(), more);
        const std::array<std::span<const std::byte>, 2> parts = {
            weft::bytes_of(h), weft::bytes_of(r_.is_head ? std::string_view() : body)};
        return to_.write_all(parts) && r_.keeps_alive;
    }
    // Sends a MiB at a time, so that the time limit does not limit the size of a file.
    bool send(const weft::file& f, std::uint64_t bytes, std::string_view type) {
        const std::string h = head("200 OK", bytes, type);
        if (!to_.write_all(weft::bytes_of(h))) return false;
        for (std::uint64_t at = 0; at < bytes && !r_.is_head;) {
            const weft::transfer_result t =
                to_.send_file(f, at, std::min<std::uint64_t>(bytes - at, 1 << 20));
            at += t.bytes();
            if (t) continue;
            to_.abort();  // also if the file was truncated: fewer bytes came than announced
            return false;
        }
        return r_.keeps_alive;
    }

private:
    std::string head(std::string_view status, std::uint64_t bytes, std::string_view more) const {
        std::string h = "HTTP/1.1 ";
        h.append(status).append("\r\nContent-Length: ").append(std::to_string(bytes));
        h.append(more).append(r_.keeps_alive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n");
        return h;
    }

    weft::tcp_stream& to_;
    const request& r_;
};

// The names in a directory, as links; the first 10 000.
weft::result<std::string> listing_of(int number) {
    auto d = weft::directory::open("/proc/self/fd/" + std::to_string(number));
    if (!d) return weft::failure(d.error());
    std::vector<std::string> names;
    while (names.size() < 10'000) {
        auto some = d->read();
        if (!some) return weft::failure(some.error());
        if (some->empty()) break;
        for (weft::directory_entry& e : *some) {
            if (e.type == std::filesystem::file_type::directory) e.name += '/';
            names.push_back(std::move(e.name));
        }
    }
    std::sort(names.begin(), names.end());
    std::string text = "<!doctype html><meta charset=utf-8><pre>\n";
    for (const std::string& n : names) {
        text.append("<a href=\"./").append(file_server::in_url(n)).append("\">");
        text.append(file_server::in_html(n)).append("</a>\n");
    }
    return text;
}

bool answer(weft::tcp_stream& s, const request& r, int directory) {
    answers to(s, r);
    if (!r.is_allowed) return to.say("405 Method Not Allowed", "", "\r\nAllow: GET, HEAD");
    if (!r.is_well_formed) return to.say("400 Bad Request", "");
    opened o = open_beneath(directory, r.path);
    if (o.error == EACCES || o.error == EPERM) return to.say("403 Forbidden", "");
    if (o.error == EMFILE || o.error == ENFILE) return to.say("503 Service Unavailable", "");
    if (o.error != 0) return to.say("404 Not Found", "");
    const bool as_directory = r.path.empty() || r.path.ends_with('/');
    if (S_ISDIR(o.status.st_mode)) {
        // The trailing slash makes the relative links of the listing resolve.
        if (!as_directory)
            return to.say("301 Moved Permanently", "",
                          "\r\nLocation: /" + file_server::in_url(r.path) + "/");
        const auto text = listing_of(o.number.get());
        if (!text) return to.say("500 Internal Server Error", "");
        return to.say("200 OK", *text, "\r\nContent-Type: text/html; charset=utf-8");
    }
    if (!S_ISREG(o.status.st_mode) || as_directory) return to.say("404 Not Found", "");
    auto f = weft::file::adopt(o.number.release());
    if (!f) return to.say("500 Internal Server Error", "");
    return to.send(*f, static_cast<std::uint64_t>(o.status.st_size),
                   file_server::type_line_of(r.path));
}

void serve(weft::tcp_stream s, int directory, std::chrono::seconds limit) {
    s.set_options({.read_timeout = limit, .write_timeout = limit});
    std::string text;
    for (;;) {
        const auto n = s.read_until(text, "\r\n\r\n", 8192);
        if (!n && n.error() != std::errc::message_size) return;  // the end, or too late
        const request r = n ? request::of({text.data(), *n}) : request();
        if (n) text.erase(0, *n);
        if (answer(s, r, directory)) continue;
        // Unread bytes from the client, such as the body of a POST, do not cost it the answer.
        static_cast<void>(s.close_gracefully(limit, 1 << 20));
        return;
    }
}

// Reads all of the text as a number.
bool read_number(std::string_view text, int& n) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() && n > 0;
}

int fail(const char* what, const std::string& why) {
    std::fprintf(stderr, "file_server: %s: %s\n", what, why.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    int limit = 30;
    int most = 1000;
    if (argc < 3 || argc > 5 || (argc > 3 && !read_number(argv[3], limit)) ||
        (argc > 4 && !read_number(argv[4], most)))
        return fail("usage", "file_server FOLDER ADDRESS:PORT [SECONDS [CONNECTIONS]]");
    const weft::owned_number directory(::open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory) return fail(argv[1], std::error_code(errno, std::system_category()).message());
    return weft::run([&] {
        auto listener = weft::tcp_listener::bind(std::string_view(argv[2]));
        if (!listener) return fail(argv[2], listener.error().message());
        std::printf("http://%s/\n", listener->local_endpoint().to_string().c_str());
        std::fflush(stdout);
        weft::counting_semaphore places(most);
        for (;;) {
            places.acquire();
            auto s = listener->accept();
            if (!s) return 0;
            weft::fiber([s = *std::move(s), &places, number = directory.get(), limit]() mutable {
                serve(std::move(s), number, std::chrono::seconds(limit));
                places.release();
            }).detach();
        }
    });
}
