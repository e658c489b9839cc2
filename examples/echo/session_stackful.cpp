// The echo session as a stackful coroutine: plain code that may suspend from any depth.
//
// The buffer is a local variable of an ordinary function, on a stack of the session's own; recv()
// and send() suspend two calls below the body. To destroy the session while it is suspended kills
// the coroutine: its stack is unwound, and ~buffer runs.
#include "styles.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace echo {

namespace {

class stackful_session final : public session {
public:
    explicit stackful_session(int fd)
        : session(fd), coroutine_([this] { body(); }, {.name = "echo session"}) {}

    void resume() override { coroutine_.resume(); }

private:
    void body() {
        buffer buf;
        for (;;) {
            recv(buf);
            send(buf);
        }
    }

    void recv(buffer& b) {
        start_async_recv(b);
        weft::this_coroutine::yield();
    }

    void send(buffer& b) {
        start_async_send(b);
        weft::this_coroutine::yield();
    }

    weft::coroutine<> coroutine_;
};

}  // namespace

session_maker stackful_sessions() {
    return [](int fd) { return std::make_unique<stackful_session>(fd); };
}

}  // namespace echo
