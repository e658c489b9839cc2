// requests: parses what one client of http_hello sends, in any parts, and makes the answers.
//
// After the client's last request, and after bytes that are no request, further bytes are ignored.
//
//   requests r;
//   while (!r.is_over()) { ... r.take(text); ... write r.answers() ...; r.forget_answers(); }
#pragma once

#include <http_parser.h>

#include <string>
#include <string_view>

namespace http_hello {

class requests {
public:
    requests() noexcept {
        ::http_parser_init(&parser_, HTTP_REQUEST);
        parser_.data = this;
    }
    requests(const requests&) = delete;

    void take(std::string_view text) {
        static const http_parser_settings settings = [] {
            http_parser_settings s;
            ::http_parser_settings_init(&s);
            s.on_message_complete = on_complete;
            return s;
        }();
        const std::size_t n = ::http_parser_execute(&parser_, &settings, text.data(), text.size());
        if (over_ || (n == text.size() && !parser_.upgrade)) return;
        answers_ += refusal;
        over_ = true;
    }

    // The answers to the complete requests.
    const std::string& answers() const noexcept { return answers_; }
    void forget_answers() noexcept { answers_.clear(); }
    bool is_over() const noexcept { return over_; }

private:
    static constexpr std::string_view answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
    static constexpr std::string_view refusal =
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

    static int on_complete(http_parser* p) {
        auto& self = *static_cast<requests*>(p->data);
        self.answers_ += answer;
        self.over_ = ::http_should_keep_alive(p) == 0;
        if (self.over_) ::http_parser_pause(p, 1);
        return 0;
    }

    http_parser parser_;
    std::string answers_;
    bool over_ = false;
};

}  // namespace http_hello
