// The echo session as a C++20 task: plain code whose suspensions are marked by co_await.
//
// The buffer is a local variable; the compiler puts it into the task's frame. An awaitable says
// what happens at a co_await: here the body stays suspended and the session keeps the handle to go
// on with. To destroy the session while it is suspended destroys the frame, and ~buffer runs.
#include <coroutine>

#include "styles.hpp"
#include "weft/task/task.hpp"

namespace echo {

namespace {

class task_session final : public session {
public:
    explicit task_session(int fd) : session(fd), body_(body()) {}

    void resume() override { suspended_ ? suspended_.resume() : body_.start(); }

private:
    weft::task<> body() {
        buffer buf;
        for (;;) {
            co_await recv(buf);
            co_await send(buf);
        }
    }

    struct completion {
        std::coroutine_handle<>& suspended;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h) const noexcept { suspended = h; }
        void await_resume() const noexcept {}
    };

    completion recv(buffer& b) {
        start_async_recv(b);
        return {suspended_};
    }

    completion send(buffer& b) {
        start_async_send(b);
        return {suspended_};
    }

    std::coroutine_handle<> suspended_;
    weft::task<> body_;
};

}  // namespace

session_maker task_sessions() {
    return [](int fd) { return std::make_unique<task_session>(fd); };
}

}  // namespace echo
