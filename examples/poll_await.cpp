// poll_await: a C++20 task and a fiber await answers from the program's own dispatcher.
//
// Shows: poll_future<T, Waker> in the co_await itself: future, context and the user's type in one,
// within the frame of the awaiter; that the type removes itself from the dispatcher when the wait
// ends, however it ends; that one definition serves a task and a fiber.
//
//   build/release/examples/poll_await
#include <cstdio>
#include <list>
#include <string>
#include <utility>

#include "weft/fiber/spawn.hpp"
#include "weft/poll/poll_future.hpp"
#include "weft/run/run.hpp"
#include "weft/task/eager_task.hpp"

struct message {
    int code;
    std::string response;
};
using answer = weft::result<message, int>;

struct call;
struct entry {
    weft::poll_context<call>* asked;
    std::string response;
};
std::list<entry> dispatcher;

struct call {
    int code;
    std::list<entry>::iterator place = dispatcher.end();

    explicit call(int c) : code(c) {}
    call(const call&) = delete;
    ~call() {
        if (place != dispatcher.end()) dispatcher.erase(place);
    }
    // The returned value makes the future ready.
    weft::poll<answer> operator()(weft::poll_future<answer>&, weft::poll_context<call>& self) {
        if (place == dispatcher.end()) {
            place = dispatcher.insert(place, {&self, {}});
            return weft::pending;
        }
        if (place->response.empty()) return weft::pending;
        return answer(message{code, std::move(place->response)});
    }
};

weft::eager_task<int> calls() {
    const answer a = co_await weft::poll_future<answer, call>(200);
    if (!a) co_return a.error();
    std::printf("a task has got: %s\n", a->response.c_str());
    co_return a->code;
}

int main() {
    return weft::run([] {
        weft::eager_task<int> task = calls();
        weft::join_handle<int> fiber = weft::spawn([] {
            const answer a = weft::await(weft::poll_future<answer, call>(201));
            std::printf("a fiber has got: %s\n", a->response.c_str());
            return a->code;
        });
        weft::fiber gives_up([] { (void)weft::await(weft::poll_future<answer, call>(408)); });
        weft::this_fiber::yield();
        gives_up.request_stop();
        gives_up.join();

        bool right = !task.done() && dispatcher.size() == 2;
        for (entry& e : dispatcher) {
            e.response = "Hello World!";
            e.asked->wake();
        }
        right = right && weft::await(task) == 200 && fiber.get() == 201;
        return right && dispatcher.empty() ? 0 : 1;
    });
}
