// The echo session as a stackful coroutine on a shared stack: plain code, and memory only for what
// is live.
//
// All sessions run on a few common stacks. While one is suspended, its live part is copied out and
// another session's bytes lie where its buffer was:
//
//   common stack   | session 7: body, buf | free |      copied out: session 1, session 4, ...
//
// So nobody but the session itself may touch its buffer, and not before it is back. That is what
// ready() is for: the reactor says only *that* the socket is ready, and the session moves the bytes
// after it has been resumed, when its buffer is in place again.
#include <memory>

#include "styles.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/coroutine/shared_stack_group.hpp"

namespace echo {

namespace {

class shared_session final : public session {
public:
    shared_session(int fd, weft::shared_stack_group& stacks)
        : session(fd),
          coroutine_([this] { body(); }, {.name = "echo session", .shared = &stacks}) {}

    void resume() override { coroutine_.resume(); }
    void ready() override { resume(); }

private:
    void body() {
        buffer buf;  // on the shared stack
        for (;;) {
            start_async_recv(buf);
            finish();
            start_async_send(buf);
            finish();
        }
    }

    void finish() {
        do weft::this_coroutine::yield();
        while (!complete_io());
    }

    weft::coroutine<> coroutine_;
};

}  // namespace

session_maker shared_sessions() {
    const auto stacks = std::make_shared<weft::shared_stack_group>(4, 64 * 1024);
    return [stacks](int fd) { return std::make_unique<shared_session>(fd, *stacks); };
}

}  // namespace echo
