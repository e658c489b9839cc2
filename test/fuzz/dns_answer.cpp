// dns_answer: a name server that answers with arbitrary bytes.
//
// Laws: an answer or an error, soon; an answer has addresses, each with the port that was asked
// for.
//
// Input: the driver; then an answer for each question: a flag, a length and bytes. With the flag,
// the answer starts with the question except its flags and counts, which are the first of the
// bytes, so that it is taken for a real answer. After each answer, and when there are no more, the
// server refuses, so that no wait is long.

#include <algorithm>
#include <chrono>
#include <span>

#include "test/fuzz/fuzz.hpp"
#include "weft/io/detail/dns_query.hpp"
#include "weft/io/resolver.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/io/udp_socket.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::fuzz::input;

constexpr std::size_t id_bytes = 2;
constexpr std::size_t head_bytes = 12;

// To a question, without one at its end.
std::string next_answer(input& in, const std::string& question) {
    const bool is_like_one = in.byte() % 4 != 0;
    std::string text(in.take(in.byte()));
    if (!is_like_one || question.size() < head_bytes) return text;
    text.resize(std::max(text.size(), head_bytes - id_bytes));
    text.insert(head_bytes - id_bytes, question, head_bytes);
    return question.substr(0, id_bytes) + text;
}

std::string refusal(std::string question) {
    if (question.size() < head_bytes) return question;
    question[2] = static_cast<char>(0x81);
    question[3] = static_cast<char>(0x83);  // no such name
    return question;
}

void serve(weft::udp_socket& socket, input& in) {
    std::string room(512, 0);
    while (const auto d = socket.recv_from(std::as_writable_bytes(std::span(room)))) {
        const std::string question = room.substr(0, d->bytes);
        if (!in.empty())
            static_cast<void>(!socket.send_to(weft::bytes_of(next_answer(in, question)), d->from));
        static_cast<void>(!socket.send_to(weft::bytes_of(refusal(question)), d->from));
    }
}

// Answers over TCP, where an answer over UDP was marked as truncated.
void serve(weft::tcp_listener& listener, input& in) {
    while (auto s = listener.accept()) {
        std::string room(512, 0);
        const std::size_t n = s->read(std::as_writable_bytes(std::span(room))).value_or(0);
        if (n < 2) continue;
        const std::string answer = next_answer(in, room.substr(2, n - 2));
        std::string length = {static_cast<char>(answer.size() / 256),
                              static_cast<char>(answer.size() % 256)};
        static_cast<void>(!s->write_all(weft::bytes_of(length + answer)));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (!weft::detail::dns_query::is_built_in()) return 0;
    input in(data, size);
    weft::testing::fuzz::in_fiber(in.byte(), [in]() mutable {
        auto listener = weft::tcp_listener::bind("127.0.0.1:0").value();
        auto socket = weft::udp_socket::bind(listener.local_endpoint());
        if (!socket) return;  // another program has that port of UDP
        weft::fiber datagrams([&] { serve(*socket, in); });
        weft::fiber connections([&] { serve(listener, in); });
        weft::resolver_options o;
        o.by = weft::resolver_backend::c_ares;
        o.servers = listener.local_endpoint().to_string();
        o.timeout = 20ms;
        o.tries = 1;
        weft::resolver r(o);
        const auto all = r.resolve("name.test", 4711);
        if (all) {
            FUZZ_CHECK(!all->empty());
            for (const weft::endpoint& e : *all) FUZZ_CHECK(e.is_ip() && e.port() == 4711);
        } else {
            FUZZ_CHECK(all.error());
        }
        datagrams.request_stop();
        connections.request_stop();
    });
    return 0;
}
