// chat: each client gives a name, and receives the lines that all other clients write.
//
// Shows: lines of text; a channel for each reader, so that a slow reader delays no other; a time
// limit for a client that does not read at all, so that such a client does not hold memory; and
// destructors that clean up however a connection ends.
//
//   build/release/examples/chat 127.0.0.1:7002        # then: nc 127.0.0.1 7002
//
// The second argument is how many seconds a guest may leave a line unread, 10 by default. Port 0
// selects a free port. The program runs until a signal ends it.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "weft/fiber/nursery.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/run/run.hpp"
#include "weft/sync/channel.hpp"

namespace {

using line = std::shared_ptr<const std::string>;

class room {
public:
    // A guest in the room; leaves with the destructor.
    class guest {
    public:
        explicit guest(room& r) : room_(r), at_(r.guests_.insert(r.guests_.end(), this)) {}
        guest(const guest&) = delete;
        ~guest() { room_.guests_.erase(at_); }

        weft::channel<line> lines{64};  // to be sent to the guest

    private:
        room& room_;
        std::list<guest*>::iterator at_;
    };

    // Sends to all guests but one. A guest with a full channel is too slow, and misses the line.
    void say(const std::string& text, const guest* from) {
        const line l = std::make_shared<const std::string>(text);
        for (guest* g : guests_)
            if (g != from) static_cast<void>(g->lines.try_send(l));
    }

private:
    std::list<guest*> guests_;
};

// Reads a line and removes its end; false when no line follows.
bool read_line(weft::tcp_stream& s, std::string& rest, std::string& text) {
    const auto n = s.read_until(rest, "\n", 4096);
    if (!n) return false;
    text = rest.substr(0, *n - 1);
    rest.erase(0, *n);
    if (!text.empty() && text.back() == '\r') text.pop_back();
    return true;
}

void serve(weft::tcp_stream s, room& r, std::chrono::seconds limit) {
    s.set_options({.write_timeout = limit});
    std::string rest;
    std::string name;
    if (!s.write_all(weft::bytes_of("your name? ")) || !read_line(s, rest, name)) return;
    room::guest me(r);
    weft::nursery writing;
    writing.spawn([&] {
        while (auto l = me.lines.recv())
            if (!s.write_all(weft::bytes_of(**l))) return s.abort();  // does not read, or is gone
    });
    r.say("* " + name + " is here\n", &me);
    for (std::string text; read_line(s, rest, text);) r.say(name + ": " + text + "\n", &me);
    r.say("* " + name + " is gone\n", &me);
    me.lines.close();
    writing.join();
}

}  // namespace

int main(int argc, char** argv) {
    const std::chrono::seconds limit(argc == 3 ? std::atoi(argv[2]) : 10);
    if (argc < 2 || argc > 3 || limit.count() <= 0) {
        std::fprintf(stderr, "usage: chat ADDRESS:PORT [SECONDS]\n");
        return 2;
    }
    return weft::run([&] {
        auto listener = weft::tcp_listener::bind(std::string_view(argv[1]));
        if (!listener) {
            std::fprintf(stderr, "chat: %s: %s\n", argv[1], listener.error().message().c_str());
            return 2;
        }
        std::printf("%s\n", listener->local_endpoint().to_string().c_str());
        std::fflush(stdout);
        room r;
        while (auto s = listener->accept())
            weft::fiber([s = *std::move(s), &r, limit]() mutable {
                serve(std::move(s), r, limit);
            }).detach();
        return 0;
    });
}
