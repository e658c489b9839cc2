// poll_future: an answer that comes through the program's own dispatcher, without any coroutine.
//
// Shows: a user-defined type as the source of events; a future that is polled once and ready when
// its context was woken; a result that is either a message or a number.
//
//   build/release/examples/poll_future
#include "weft/poll/poll_future.hpp"

#include <cstdio>
#include <list>
#include <optional>
#include <utility>

struct message {
    int return_code;
    int response_code;
};
using answer = weft::result<message, int>;

struct call;
using call_context = weft::poll_context<call>;
std::list<call_context*> waiting;  // the dispatcher: the contexts that wait for a message

struct call {
    std::optional<answer> arrived;
    std::list<call_context*>::iterator place = waiting.end();

    call() = default;
    call(const call&) = delete;
    ~call() { leave(); }  // if no message came

    // Called by the first poll, and by each wake after it.
    void operator()(weft::poll_future<answer>& future, call_context& self) {
        if (arrived) {
            leave();
            future.set(*std::move(arrived));
        } else if (place == waiting.end()) {
            place = waiting.insert(waiting.end(), &self);
        }
    }
    void leave() {
        if (place != waiting.end()) waiting.erase(std::exchange(place, waiting.end()));
    }
};

// Called for a message from the network.
void dispatch(answer a) {
    call_context& first = *waiting.front();
    first.data().arrived.emplace(std::move(a));
    first.wake();
}

int main() {
    weft::poll_future<answer> well, ill;
    call_context to_one, to_another;
    bool right = !well.poll(to_one) && !ill.poll(to_another) && waiting.size() == 2;

    dispatch(message{.return_code = 0, .response_code = 200});
    dispatch(weft::failure(404));

    const answer good = well.take(), bad = ill.take();
    right = right && waiting.empty() && good && !bad;
    std::printf("a response: %d; an error: %d\n", good->response_code, bad.error());
    return right && good->response_code == 200 && bad.error() == 404 ? 0 : 1;
}
