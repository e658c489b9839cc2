// The echo session as a stackful coroutine: plain code that may suspend from any depth.
//
// The buffer is a local variable of an ordinary function. Destroying the session while it is
// suspended kills the coroutine: the stack is unwound, and ~buffer runs.
//
// The stack is the session's own, or one of a few that all sessions share. On a shared stack, the
// live part of a suspended session is copied out, and another session's bytes take its place:
//
//   common stack   | session 7: body, buf | free |      copied out: session 1, session 4, ...
#include <memory>
#include <utility>

#include "session.hpp"
#include "styles.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/task/task_handle.hpp"

namespace echo {

namespace {

class stackful_session final : public session {
public:
    stackful_session(weft::tcp_stream client, weft::shared_stack_group* stacks)
        : session(std::move(client)),
          coroutine_([this] { body(); }, {.name = "echo session", .shared = stacks}) {}

    void resume() override { coroutine_.resume(); }

private:
    void body() {
        buffer buf;
        for (;;) {
            do weft::this_coroutine::yield();
            while (!recv(buf));
            while (!send(buf)) weft::this_coroutine::yield();
        }
    }

    weft::coroutine<> coroutine_;
};

}  // namespace

void begin_stackful(weft::nursery& sessions, weft::tcp_stream client) {
    sessions.spawn(drive(std::make_unique<stackful_session>(std::move(client), nullptr)));
}

void begin_shared(weft::nursery& sessions, weft::tcp_stream client) {
    static weft::shared_stack_group stacks(4, 64 * 1024);
    sessions.spawn(drive(std::make_unique<stackful_session>(std::move(client), &stacks)));
}

}  // namespace echo
