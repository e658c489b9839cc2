// Streams of stdio, over a copy of a descriptor.

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

constexpr choice ways_in[] = {{"fread", 0}, {"fgets", 1}, {"fgetc", 2}};
constexpr choice buffers[] = {{"buffered", _IOFBF}, {"bare", _IONBF}};

void reads_stream(making& m) {
    // A byte at a time takes longer than the wait for an answer.
    if (m.number(3) == _IONBF && m.size(1) > 5000) return m.say("many calls");
    std::FILE* const f = ::fdopen(::dup(m.fd(0)), "r");
    if (f == nullptr) return m.say("no stream");
    ::setvbuf(f, nullptr, m.number(3), BUFSIZ);
    std::string room(m.size(1) + 1, '\0');
    long n = 0;
    if (m.value(2) == 0) {
        n = static_cast<long>(::fread(room.data(), 1, m.size(1), f));
    } else if (m.value(2) == 1) {
        n = ::fgets(room.data(), static_cast<int>(room.size()), f) != nullptr ? 1 : 0;
    } else {
        n = ::fgetc(f) >= 0 ? 1 : 0;
    }
    m.tell_moved(n, m.size(1));
    m.say_bytes(room, m.value(2) == 0 ? n : 0);
    m.say(::ferror(f) != 0 ? "error" : ::feof(f) != 0 ? "end" : "more");
    ::fclose(f);
}

void writes_stream(making& m) {
    std::FILE* const f = ::fdopen(::dup(m.fd(0)), "w");
    if (f == nullptr) return m.say("no stream");
    ::setvbuf(f, nullptr, m.number(2), BUFSIZ);
    const std::string from = m.given(m.size(1));
    m.tell_moved(static_cast<long>(::fwrite(from.data(), 1, from.size(), f)), from.size());
    m.tell(::fflush(f));
    m.tell(::fclose(f));
}

}  // namespace

void add_streams(std::vector<call_spec>& all) {
    constexpr unsigned kinds = sockets | pipe_end | file;
    all.push_back({"stream_read",
                   3,
                   takes,
                   {a_slot(kinds), one_of(sizes), one_of(ways_in), one_of(buffers)},
                   reads_stream});
    all.push_back(
        {"stream_write", 3, gives, {a_slot(kinds), one_of(sizes), one_of(buffers)}, writes_stream});
}

}  // namespace weft::testing::fuzz
