// weft_send_file [ROUNDS]: the processor time of a file server that sends a file of 1 GiB over
// loopback: weft's send_file() in an HTTP server of a few lines, over epoll and over io_uring,
// against nginx with `sendfile on` in one process.
//
// The file is sparse, is in a directory of its own below the directory for temporary files, and
// is in the page cache from the beginning. The load is the same for each server: on another core it
// requests the file and drops the bytes without a copy. Exit status: 0 no bar is missed, 1 one is,
// 2 bad input, or nginx is missing.

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/net/sockets.hpp"
#include "bench/net/trial.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/file.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/sched/loop.hpp"

namespace {

using bench::net::die;
using bench::net::give_up;
using bench::net::server_child;

constexpr std::uint64_t file_bytes = 1 << 30;

// The directory with the file; removed when this process ends, also by an interrupt.
class folder {
public:
    folder() : path_((std::filesystem::temp_directory_path() / "weft.files.XXXXXX").string()) {
        if (::mkdtemp(path_.data()) == nullptr) die("no folder for the file");
        const int fd = ::open((path_ + "/file").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0 || ::ftruncate(fd, file_bytes) != 0) die("no file");
        std::vector<char> room(1 << 20);
        while (::read(fd, room.data(), room.size()) > 0) {
        }
        ::close(fd);
    }
    folder(const folder&) = delete;
    ~folder() {
        std::error_code ignored;
        if (::getpid() == owner_) std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const noexcept { return path_; }

private:
    const pid_t owner_ = ::getpid();
    std::string path_;
};

const folder& files() {
    static const folder f;
    return f;
}

// Answers GET and nothing else, one after the other, for files in that directory.
void answer(weft::tcp_stream s) {
    std::string text;
    while (const std::size_t n = s.read_until(text, "\r\n\r\n", 4096).value_or(0)) {
        const std::string_view head = std::string_view(text).substr(0, n);
        const std::size_t end = head.find(" HTTP/1.1\r\n");
        if (head.substr(0, 5) != "GET /" || end == head.npos) return;
        const std::string name(head.substr(5, end - 5));
        auto file = weft::file::open(files().path() + "/" + name);
        if (!file || name.find('/') != name.npos) {
            if (!s.write_all(weft::bytes_of("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")))
                return;
        } else {
            const std::uint64_t bytes = file->size().value_or(0);
            const std::string found =
                "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
            if (!s.write_all(weft::bytes_of(found)) || !s.send_file(*file, 0, bytes)) return;
        }
        text.erase(0, n);
    }
}

void serve_by_weft(int tell, weft::io_kind kind) {
    auto driver = weft::make_io_driver(kind);
    if (kind == weft::io_kind::io_uring && driver->name() != std::string_view("io_uring"))
        give_up("io_uring is refused here");
    weft::loop l(std::move(driver));
    weft::fiber server(
        [&] {
            auto listener = weft::tcp_listener::bind("127.0.0.1:0").value();
            bench::net::tell_port(tell, listener.local_endpoint().port());
            while (auto s = listener.accept())
                weft::fiber([s = *std::move(s)]() mutable { answer(std::move(s)); }).detach();
        },
        {.on = l});
    l.run();
}

std::uint16_t free_port() {
    const int fd = bench::net::listen_on(0);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
    ::close(fd);
    return ntohs(at.sin_port);
}

// One process, which is the worker.
void serve_by_nginx(int tell) {
    const std::string& at = files().path();
    const std::uint16_t port = free_port();
    std::ofstream(at + "/nginx.conf")
        << "daemon off; master_process off; pid " << at << "/nginx.pid; error_log stderr crit;\n"
        << "events { worker_connections 64; }\n"
        << "http { access_log off; sendfile on; client_body_temp_path " << at
        << "; proxy_temp_path " << at << "; fastcgi_temp_path " << at << "; uwsgi_temp_path " << at
        << "; scgi_temp_path " << at << ";\n"
        << "server { listen 127.0.0.1:" << port << "; root " << at << "; } }\n";
    bench::net::tell_port(tell, port);
    const std::string config = at + "/nginx.conf";
    // In Debian nginx is in a directory that only root has in PATH.
    for (const char* program : {"nginx", "/usr/sbin/nginx"})
        ::execlp(program, program, "-p", at.c_str(), "-c", config.c_str(), "-e", "stderr", nullptr);
    die("no nginx");
}

// Connects as soon as a server listens.
int connected(std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i != 1000; ++i) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (::connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0) return fd;
        const int error = errno;
        ::close(fd);
        errno = error;
        if (error != ECONNREFUSED || ::usleep(10'000) != 0) break;
    }
    die("connect");
}

// Requests the file, and drops the bytes.
void fetch(int fd) {
    constexpr std::string_view request = "GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n";
    if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) die("send");
    std::string head;
    std::size_t end = head.npos;
    while ((end = head.find("\r\n\r\n")) == head.npos) {
        std::array<char, 512> part;
        const ssize_t n = ::recv(fd, part.data(), part.size(), 0);
        if (n <= 0) die("a server has not answered");
        head.append(part.data(), static_cast<std::size_t>(n));
    }
    const std::string length = "Content-Length: " + std::to_string(file_bytes) + "\r\n";
    if (head.rfind("HTTP/1.1 200 ", 0) != 0 || head.find(length) > end)
        give_up("a server has answered: " + head.substr(0, head.find('\r')));
    std::uint64_t came = head.size() - end - 4;
    while (came < file_bytes) {
        const ssize_t n = ::recv(fd, nullptr, 1 << 20, MSG_TRUNC);
        if (n <= 0) die("a server has not sent all of the file");
        came += static_cast<std::uint64_t>(n);
    }
    if (came != file_bytes) give_up("a server has sent more than the file");
}

struct subject {
    const char* name;
    void (*serve)(int tell);
    std::vector<double> ms{};  // a file, of each round
};

double measure(const subject& s) {
    constexpr int times = 3;
    const server_child server([&](int tell) {
        bench::net::pin_to(0);
        s.serve(tell);
    });
    bench::net::pin_to(1);
    const int fd = connected(server.port());
    fetch(fd);
    const double began = server.cpu_us();
    for (int i = 0; i != times; ++i) fetch(fd);
    const double spent = server.cpu_us() - began;
    ::close(fd);
    return spent / 1000 / times;
}

}  // namespace

int main(int argc, char** argv) {
    const unsigned rounds = bench::net::rounds_argument(argc, argv, 13);
    // An interrupted call fails, and the directory is removed at the end of this process.
    struct sigaction interrupt{};
    interrupt.sa_handler = [](int) {};
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &interrupt, nullptr);
    files();
    std::vector<subject> all = {
        {"nginx, sendfile on", serve_by_nginx},
        {"weft over epoll", [](int tell) { serve_by_weft(tell, weft::io_kind::epoll); }},
        {"weft over io_uring", [](int tell) { serve_by_weft(tell, weft::io_kind::io_uring); }},
    };
    for (unsigned r = 0; r != rounds; ++r)
        for (subject& s : all) s.ms.push_back(measure(s));
    for (const subject& s : all)
        std::printf("%-52s %6.1f ms a GiB\n", s.name, bench::net::median(s.ms));
    bench::net::bars bars;
    bars.hold("weft over epoll to nginx", all[1].ms, all[0].ms, 1.05);
    bars.hold("weft over io_uring to nginx", all[2].ms, all[0].ms, 1.05);
    return bars.any_missed ? 1 : 0;
}
