// The echo session as a switch: no stack, no frame, one small integer.
//
// resume() is an ordinary function that jumps to where it last yielded. It keeps no local variable
// from one yield to the next, so the buffer has to be a member, and to destroy the session while it
// is suspended is to destroy an object like any other.
#include "styles.hpp"
#include "weft/stackless/stackless.hpp"

namespace echo {

namespace {

class switch_session final : public session {
public:
    using session::session;

    void resume() override {
        WEFT_REENTER(at_) for (;;) {
            WEFT_YIELD start_async_recv(buf_);
            WEFT_YIELD start_async_send(buf_);
        }
    }

private:
    weft::stackless at_;
    buffer buf_;
};

}  // namespace

session_maker switch_sessions() {
    return [](int fd) { return std::make_unique<switch_session>(fd); };
}

}  // namespace echo
