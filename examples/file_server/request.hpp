// request: the head of a request as file_server parses it, and the encodings of names.
//
//   const request r = request::of("GET /a%20b/?x HTTP/1.1\r\nHost: x\r\n\r\n");   // r.path: "a b/"
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace file_server {

inline bool is_same(std::string_view a, std::string_view b) {
    const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::ranges::equal(a, b, {}, small, small);
}

// A request that is not well formed is the last of its connection.
struct request {
    bool is_allowed = true;  // GET or HEAD
    bool is_well_formed = false;
    bool is_head = false;
    bool keeps_alive = false;
    std::string path;  // below the directory, decoded, without the first slash

    static request of(std::string_view head) {
        request r;
        const std::string_view line = next_line(head);
        const std::size_t first = line.find(' ');
        const std::size_t last = line.rfind(' ');
        if (first == last) return r;
        const std::string_view method = line.substr(0, first);
        const std::string_view version = line.substr(last + 1);
        r.is_head = method == "HEAD";
        r.is_allowed = r.is_head || method == "GET";
        if (version != "HTTP/1.1" && version != "HTTP/1.0") return r;
        bool keeps = version == "HTTP/1.1";
        while (!head.empty()) {
            const std::string_view field = next_line(head);
            const std::string_view name = field.substr(0, field.find(':'));
            std::string_view value = field.substr(std::min(name.size() + 1, field.size()));
            value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
            if (is_same(name, "connection") && is_same(value, "close")) keeps = false;
            // GET and HEAD have no body; a request with a body is refused, and the body not read.
            if (is_same(name, "transfer-encoding")) return r;
            if (is_same(name, "content-length") && value != "0") return r;
        }
        r.is_well_formed = r.take_path(line.substr(first + 1, last - first - 1));
        r.keeps_alive = keeps && r.is_well_formed && r.is_allowed;
        return r;
    }

private:
    static std::string_view next_line(std::string_view& text) {
        const std::size_t n = std::min(text.find("\r\n"), text.size());
        const std::string_view line = text.substr(0, n);
        text.remove_prefix(std::min(n + 2, text.size()));
        return line;
    }
    static int digit(char c) {
        if (c >= '0' && c <= '9') return c - '0';
        const char small = static_cast<char>(c | 32);
        return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
    }

    // Each part of a path is a name: never empty, except for the last, and never "." or "..".
    bool take_path(std::string_view target) {
        target = target.substr(0, target.find_first_of("?#"));
        if (target.empty() || target.front() != '/') return false;
        for (std::size_t i = 1; i < target.size(); ++i) {
            char c = target[i];
            if (c == '%') {
                if (i + 2 >= target.size()) return false;
                const int high = digit(target[i + 1]);
                const int low = digit(target[i + 2]);
                if (high < 0 || low < 0) return false;
                c = static_cast<char>(high * 16 + low);
                if (c == '/') return false;  // no name contains a slash
                i += 2;
            }
            if (c == '\0') return false;  // the system would see only the part before the zero
            path += c;
        }
        for (std::size_t at = 0; at < path.size();) {
            const std::size_t end = std::min(path.find('/', at), path.size());
            const std::string_view part(path.data() + at, end - at);
            if (part.empty() || part == "." || part == "..") return false;
            at = end + 1;
        }
        return true;
    }
};

// A name, or names with slashes between them, as a part of a URL.
inline std::string in_url(std::string_view name) {
    std::string text;
    for (const char c : name) {
        const bool is_plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
            (c != '\0' && std::string_view("-._~/").find(c) != std::string_view::npos);
        if (is_plain) {
            text += c;
            continue;
        }
        constexpr char digits[] = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        text.append({'%', digits[byte / 16], digits[byte % 16]});
    }
    return text;
}

inline std::string in_html(std::string_view name) {
    std::string text;
    for (const char c : name) {
        if (c == '<')
            text += "&lt;";
        else if (c == '&')
            text += "&amp;";
        else
            text += c;
    }
    return text;
}

// The Content-Type line of a head, by the end of the name.
inline std::string_view type_line_of(std::string_view path) {
    struct type {
        std::string_view end;
        std::string_view line;
    };
    constexpr type all[] = {
        {".html", "\r\nContent-Type: text/html; charset=utf-8"},
        {".txt", "\r\nContent-Type: text/plain; charset=utf-8"},
        {".css", "\r\nContent-Type: text/css"},
        {".js", "\r\nContent-Type: text/javascript"},
        {".svg", "\r\nContent-Type: image/svg+xml"},
        {".png", "\r\nContent-Type: image/png"},
        {".jpg", "\r\nContent-Type: image/jpeg"},
    };
    for (const type& t : all)
        if (path.ends_with(t.end)) return t.line;
    return "\r\nContent-Type: application/octet-stream";
}

}  // namespace file_server
