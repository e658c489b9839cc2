// The echo session as a switch: no stack, no frame, one small integer.
//
// resume() is an ordinary function that jumps to where it last yielded. No local variable survives
// from one yield to the next, so the buffer has to be a member. Destroying the session while it is
// suspended destroys an object like any other.
#include <memory>
#include <utility>

#include "session.hpp"
#include "styles.hpp"
#include "weft/stackless/stackless.hpp"
#include "weft/task/task_handle.hpp"

namespace echo {

namespace {

class switch_session final : public session {
public:
    using session::session;

    void resume() override {
        WEFT_REENTER(at_) for (;;) {
            do {
                WEFT_YIELD;
            } while (!recv(buf_));
            while (!send(buf_)) WEFT_YIELD;
        }
    }

private:
    weft::stackless at_;
    buffer buf_;
};

}  // namespace

void begin_switch(weft::nursery& sessions, weft::tcp_stream client) {
    sessions.spawn(drive(std::make_unique<switch_session>(std::move(client))));
}

}  // namespace echo
