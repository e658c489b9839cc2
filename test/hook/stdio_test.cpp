// Streams of stdio in fibers: their locks are the fiber's, other fibers run during their waits, and
// their results are those on a thread.

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <wchar.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "test/hook/suite.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"

// What libc declares only to programs that are compiled with _FORTIFY_SOURCE, or as other names.
extern "C" {
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
char* __fgets_chk(char*, size_t, int, FILE*);
int _IO_getc(FILE*);
int _IO_putc(int, FILE*);
int __vfprintf_chk(FILE*, int, const char*, va_list);
int __vprintf_chk(int, const char*, va_list);
int __fprintf_chk(FILE*, int, const char*, ...);
int __printf_chk(int, const char*, ...);
int __dprintf_chk(int, int, const char*, ...);
int __vdprintf_chk(int, int, const char*, va_list);
int __isoc99_fscanf(FILE*, const char*, ...);
int __isoc99_vfscanf(FILE*, const char*, va_list);
int __isoc99_scanf(const char*, ...);
int __isoc99_vscanf(const char*, va_list);
int __isoc99_fwscanf(FILE*, const wchar_t*, ...);
int __isoc99_vfwscanf(FILE*, const wchar_t*, va_list);
}

namespace {

using namespace weft;
using weft::testing::after_ms;

// Both ends of a pipe as streams, closed with the object.
struct piped {
    FILE* in = nullptr;
    FILE* out = nullptr;

    piped() {
        int ends[2] = {-1, -1};
        HOOKED(pipe)(ends);
        in = ::fdopen(ends[0], "r");
        out = ::fdopen(ends[1], "w");
    }
    piped(const piped&) = delete;
    ~piped() {
        end();
        if (in != nullptr) HOOKED(fclose)(in);
    }
    void end() {
        if (out != nullptr) HOOKED(fclose)(out);
        out = nullptr;
    }
};

// Replaces a standard stream with another one while the object exists. The streams' names are
// variables.
class in_place_of {
public:
    in_place_of(FILE*& standard, FILE* by) : standard_(standard), before_(standard) {
        standard_ = by;
    }
    in_place_of(const in_place_of&) = delete;
    ~in_place_of() { standard_ = before_; }

private:
    FILE*& standard_;
    FILE* const before_;
};

template <class F>
int with_list(F f, ...) {
    va_list rest;
    va_start(rest, f);
    const int n = f(rest);
    va_end(rest);
    return n;
}

POSIX_CASE(streams_read_what_comes_in_pieces) {
    piped p;
    t.beside([&] {
        for (const char* piece : {"one ", "line\ntw", "o 12 0x1f\nrest", " of it;and more"}) {
            after_ms(2);
            HOOKED(fputs)(piece, p.out);
            HOOKED(fflush)(p.out);
        }
        p.end();
    });
    char line[64] = {};
    t.said("fgets", HOOKED(fgets)(line, sizeof line, p.in));
    char word[16] = {};
    int decimal = 0;
    int hexadecimal = 0;
    t.told("fscanf", HOOKED(fscanf)(p.in, "%15s %d %i\n", word, &decimal, &hexadecimal));
    t.said("the word", word);
    t.told("a number", decimal);
    t.told("another", hexadecimal);
    char* rest = nullptr;
    size_t room = 0;
    t.told("getdelim", HOOKED(getdelim)(&rest, &room, ';', p.in));
    t.said("up to it", rest);
    t.told("getline to the end", HOOKED(getline)(&rest, &room, p.in));
    t.said("the rest", rest);
    t.told("the end", HOOKED(feof)(p.in) != 0);
    errno = 0;
    t.told("then", HOOKED(fgetc)(p.in));
    t.told("no error", HOOKED(ferror)(p.in));
    ::free(rest);
    t.join();
}

POSIX_CASE(streams_write_more_than_a_pipe_takes) {
    piped p;
    const std::string much(300'000, 'x');
    std::vector<char> got(much.size());
    long bytes = 0;
    t.beside([&] {
        after_ms(2);
        bytes = static_cast<long>(HOOKED(fread)(got.data(), 1, got.size(), p.in));
    });
    t.told("fwrite", static_cast<long>(HOOKED(fwrite)(much.data(), 1, much.size(), p.out)));
    t.told("flush", HOOKED(fflush)(p.out));
    t.join();
    t.told("fread", bytes);
    t.told("all as sent", std::string(got.begin(), got.end()) == much);
}

POSIX_CASE(streams_tell_of_errors) {
    piped p;
    t.told("write where one reads", HOOKED(fputc)('x', p.in));
    t.told("an error", HOOKED(ferror)(p.in) != 0);
    HOOKED(clearerr)(p.in);
    t.told("none", HOOKED(ferror)(p.in));
    HOOKED(fclose)(p.in);
    p.in = nullptr;
    t.told("write where nobody reads", HOOKED(fputs)("lost", p.out));
    t.told("flush", HOOKED(fflush)(p.out));
    t.told("seek in a pipe", HOOKED(fseek)(p.out, 0, SEEK_SET));
    t.told("where in a pipe", HOOKED(ftell)(p.out));
}

POSIX_CASE(streams_do_not_wait_where_they_are_not_to) {
    piped p;
    HOOKED(fcntl)(::fileno(p.in), F_SETFL, O_NONBLOCK);
    t.told("nothing there", HOOKED(fgetc)(p.in));
    t.told("an error", HOOKED(ferror)(p.in) != 0);
}

POSIX_CASE(a_locked_stream_is_its_holder_s) {
    piped p;
    HOOKED(setvbuf)(p.out, nullptr, _IOFBF, 4096);
    const auto writes = [&](const char* name) {
        for (int i = 0; i < 3; ++i) {
            HOOKED(flockfile)(p.out);
            HOOKED(fputs)("<", p.out);
            after_ms(1);
            HOOKED(fputs)(name, p.out);
            after_ms(1);
            HOOKED(fputs)(">", p.out);
            HOOKED(funlockfile)(p.out);
        }
    };
    t.beside([&] { writes("a"); });
    t.beside([&] { writes("b"); });
    writes("c");
    t.join();
    p.end();
    std::array<int, 3> whole{};
    char piece[4] = {};
    while (HOOKED(fread)(piece, 1, 3, p.in) == 3)
        if (piece[0] == '<' && piece[2] == '>') ++whole.at(static_cast<unsigned>(piece[1] - 'a'));
    for (const int n : whole) t.told("pieces in one", n);
}

POSIX_CASE(a_locked_stream_is_not_had_by_trying) {
    piped p;
    HOOKED(flockfile)(p.out);
    t.told("again by its owner", HOOKED(ftrylockfile)(p.out));
    HOOKED(funlockfile)(p.out);
    t.beside([&] { t.told("by another", HOOKED(ftrylockfile)(p.out) != 0); });
    t.join();
    HOOKED(funlockfile)(p.out);
    t.beside([&] {
        t.told("when it is free", HOOKED(ftrylockfile)(p.out));
        HOOKED(funlockfile)(p.out);
    });
    t.join();
}

// As long as one is in the middle of a call that waits, another's call on the stream waits.
POSIX_CASE(a_stream_that_waits_is_not_entered) {
    piped p;
    char last[2] = {};
    t.beside([&] {
        after_ms(5);
        HOOKED(fread)(last, 1, 1, p.in);
    });
    t.beside([&] {
        after_ms(15);
        HOOKED(fputs)("first!", p.out);
        HOOKED(fflush)(p.out);
    });
    char text[6] = {};
    t.told("first", static_cast<long>(HOOKED(fread)(text, 1, 5, p.in)));
    t.said("has", text);
    t.join();
    t.said("the other has", last);
}

POSIX_CASE(a_stream_is_closed_when_its_holder_has_left_it) {
    piped p;
    std::atomic<bool> is_in{false};
    std::atomic<bool> is_out{false};
    t.beside([&] {
        HOOKED(flockfile)(p.out);
        is_in = true;
        after_ms(20);
        HOOKED(fputs)("whole", p.out);
        is_out = true;
        HOOKED(funlockfile)(p.out);
    });
    while (!is_in) after_ms(1);
    t.told("fclose", HOOKED(fclose)(p.out));
    p.out = nullptr;
    t.told("its owner has left", is_out);
    t.join();
    char text[8] = {};
    t.told("fread", static_cast<long>(HOOKED(fread)(text, 1, sizeof text, p.in)));
    t.said("text", text);
}

POSIX_CASE(what_is_printed_to_a_descriptor_is_waited_for) {
    auto s = weft::testing::fd_pair::sockets();
    const std::string text(400'000, 'x');
    std::size_t got = 0;
    t.beside([&] {
        std::string room(70'000, 0);
        for (ssize_t n; (n = HOOKED(read)(s.b, room.data(), room.size())) > 0;)
            got += static_cast<std::size_t>(n);
    });
    t.told("dprintf", HOOKED(dprintf)(s.a, "%s\n", text.c_str()));
    t.told("__dprintf_chk", HOOKED(__dprintf_chk)(s.a, 1, "%d %s\n", 7, text.c_str()));
    t.told("vdprintf", with_list([&](va_list l) { return HOOKED(vdprintf)(s.a, "%d\n", l); }, 5));
    t.told("__vdprintf_chk",
           with_list([&](va_list l) { return HOOKED(__vdprintf_chk)(s.a, 1, "%d\n", l); }, 6));
    s.close_a();
    t.join();
    t.told("got", static_cast<long>(got));
}

POSIX_CASE(all_streams_are_flushed_at_once) {
    piped p;
    HOOKED(fputs)("kept", p.out);
    t.told("flush of all", HOOKED(fflush)(nullptr));
    char text[8] = {};
    t.told("read", static_cast<long>(HOOKED(read)(::fileno(p.in), text, sizeof text)));
    t.said("text", text);
}

POSIX_CASE(each_call_on_a_stream_of_a_file) {
    FILE* const file = ::tmpfile();
    char buffer[BUFSIZ] = {};  // AddressSanitizer takes it to be of that size
    char text[64] = {};
    HOOKED(setbuf)(file, nullptr);
    HOOKED(setbuffer)(file, buffer, sizeof buffer);
    HOOKED(setlinebuf)(file);
    t.told("putc", HOOKED(putc)('p', file));
    t.told("_IO_putc", HOOKED(_IO_putc)('q', file));
    t.told("putw", HOOKED(putw)(0x41424344, file));
    t.told("fprintf", HOOKED(fprintf)(file, " %d %s\n", 12, "text"));
    t.told("__fprintf_chk", HOOKED(__fprintf_chk)(file, 1, "%c %ld\n", 'c', 77L));
    t.told("vfprintf", with_list([&](va_list l) { return HOOKED(vfprintf)(file, "%d\n", l); }, 5));
    t.told("__vfprintf_chk",
           with_list([&](va_list l) { return HOOKED(__vfprintf_chk)(file, 1, "%d\n", l); }, 6));
    t.told("ftell", HOOKED(ftell)(file));
    HOOKED(rewind)(file);
    t.told("getc", HOOKED(getc)(file));
    t.told("_IO_getc", HOOKED(_IO_getc)(file));
    t.told("ungetc", HOOKED(ungetc)('Q', file));
    t.told("fgetc", HOOKED(fgetc)(file));
    t.told("getw", HOOKED(getw)(file));
    fpos_t at{};
    fpos64_t at64{};
    t.told("fgetpos", HOOKED(fgetpos)(file, &at));
    t.told("fgetpos64", HOOKED(fgetpos64)(file, &at64));
    t.said("__fgets_chk", HOOKED(__fgets_chk)(text, sizeof text, 32, file));
    t.told("fsetpos", HOOKED(fsetpos)(file, &at));
    int number = 0;
    t.told("vfscanf",
           with_list([&](va_list l) { return HOOKED(vfscanf)(file, "%d", l); }, &number));
    t.told("which", number);
    t.told("fsetpos64", HOOKED(fsetpos64)(file, &at64));
    t.told("__isoc99_fscanf", HOOKED(__isoc99_fscanf)(file, "%d %63s", &number, text));
    t.said("its text", text);
    t.told("__isoc99_vfscanf",
           with_list([&](va_list l) { return HOOKED(__isoc99_vfscanf)(file, " %63s", l); }, text));
    t.told("fseeko", HOOKED(fseeko)(file, 2, SEEK_SET));
    t.told("__fread_chk", static_cast<long>(HOOKED(__fread_chk)(text, sizeof text, 1, 4, file)));
    t.told("fseeko64", HOOKED(fseeko64)(file, 1, SEEK_CUR));
    t.told("ftello", HOOKED(ftello)(file));
    t.told("ftello64", HOOKED(ftello64)(file));
    char* line = nullptr;
    size_t room = 0;
    t.told("__getdelim", HOOKED(__getdelim)(&line, &room, '\n', file));
    t.said("line", line);
    ::free(line);
    HOOKED(fclose)(file);
}

POSIX_CASE(each_call_on_the_standard_streams) {
    FILE* const file = ::tmpfile();
    {
        const in_place_of out(stdout, file);
        t.told("putchar", HOOKED(putchar)('1'));
        t.told("puts", HOOKED(puts)("2 3"));
        t.told("printf", HOOKED(printf)("%d %d ", 4, 5));
        t.told("__printf_chk", HOOKED(__printf_chk)(1, "%d ", 6));
        t.told("vprintf", with_list([](va_list l) { return HOOKED(vprintf)("%d ", l); }, 7));
        t.told("__vprintf_chk",
               with_list([](va_list l) { return HOOKED(__vprintf_chk)(1, "%d ", l); }, 8));
    }
    {
        const in_place_of err(stderr, file);
        errno = ENOENT;
        HOOKED(perror)("9");
    }
    HOOKED(rewind)(file);
    {
        const in_place_of in(stdin, file);
        int n = 0;
        t.told("getchar", HOOKED(getchar)());
        t.told("scanf", HOOKED(scanf)("%d", &n));
        t.told("vscanf", with_list([](va_list l) { return HOOKED(vscanf)("%d", l); }, &n));
        t.told("__isoc99_scanf", HOOKED(__isoc99_scanf)("%d", &n));
        t.told("__isoc99_vscanf",
               with_list([](va_list l) { return HOOKED(__isoc99_vscanf)("%d", l); }, &n));
        t.told("the last", n);
    }
    char rest[128] = {};
    HOOKED(fread)(rest, 1, sizeof rest - 1, file);
    t.said("rest", rest);
    HOOKED(fclose)(file);
}

POSIX_CASE(each_call_on_a_wide_stream) {
    FILE* const file = ::tmpfile();
    t.told("fwide", HOOKED(fwide)(file, 1) > 0);
    t.told("fputwc", HOOKED(fputwc)(L'a', file) == L'a');
    t.told("putwc", HOOKED(putwc)(L'b', file) == L'b');
    t.told("fputws", HOOKED(fputws)(L" line\n", file) >= 0);
    t.told("fwprintf", HOOKED(fwprintf)(file, L"%d ", 12));
    t.told("vfwprintf",
           with_list([&](va_list l) { return HOOKED(vfwprintf)(file, L"%d ", l); }, 13));
    {
        const in_place_of out(stdout, file);
        t.told("putwchar", HOOKED(putwchar)(L'1') == L'1');
        t.told("wprintf", HOOKED(wprintf)(L"%d ", 4));
        t.told("vwprintf", with_list([](va_list l) { return HOOKED(vwprintf)(L"%d ", l); }, 15));
    }
    HOOKED(rewind)(file);
    t.told("fgetwc", HOOKED(fgetwc)(file) == L'a');
    t.told("ungetwc", HOOKED(ungetwc)(L'A', file) == L'A');
    t.told("getwc", HOOKED(getwc)(file) == L'A');
    {
        const in_place_of in(stdin, file);
        t.told("getwchar", HOOKED(getwchar)() == L'b');
    }
    wchar_t line[16] = {};
    t.told("fgetws", HOOKED(fgetws)(line, 16, file) == line && ::wcscmp(line, L" line\n") == 0);
    int n = 0;
    t.told("fwscanf", HOOKED(fwscanf)(file, L"%d", &n));
    t.told("vfwscanf", with_list([&](va_list l) { return HOOKED(vfwscanf)(file, L"%d", l); }, &n));
    t.told("__isoc99_fwscanf", HOOKED(__isoc99_fwscanf)(file, L"%d", &n));
    t.told("__isoc99_vfwscanf",
           with_list([&](va_list l) { return HOOKED(__isoc99_vfwscanf)(file, L"%d", l); }, &n));
    t.told("the last", n);
    HOOKED(fclose)(file);
}

TEST(stdio, lets_other_fibers_run_while_a_stream_waits) {
    run([] {
        piped p;
        int turns = 0;
        bool has_come = false;
        fiber other([&] {
            while (!has_come && turns < 1000) {
                ++turns;
                ::usleep(1000);
                if (turns == 5) {
                    ::fputs("x\n", p.out);
                    ::fflush(p.out);
                }
            }
        });
        char line[8] = {};
        EXPECT_NE(::fgets(line, sizeof line, p.in), nullptr);
        has_come = true;
        other.join();
        EXPECT_GE(turns, 5);
        EXPECT_LT(turns, 1000);
    });
}

TEST(stdio, wait_can_be_ended_by_a_stop) {
    run([] {
        piped p;
        int why = 0;
        fiber reader([&] {
            EXPECT_EQ(::fgetc(p.in), EOF);
            why = errno;
            EXPECT_NE(::ferror(p.in), 0);
        });
        ::usleep(2000);
        reader.request_stop();
        reader.join();
        EXPECT_EQ(why, ECANCELED);
    });
}

// A waiter that enters no stream passes on the wake that a stream's end gives to one.
TEST(stdio, flush_of_all_streams_passes_the_wake_to_the_next_waiter) {
    piped p;
    bool was_in = false;
    run([&] {
        ::flockfile(p.out);
        fiber flushes([] { EXPECT_EQ(::fflush(nullptr), 0); });
        this_fiber::yield();
        fiber enters([&] {
            ::flockfile(p.out);
            was_in = true;
            ::funlockfile(p.out);
        });
        this_fiber::yield();
        EXPECT_FALSE(was_in);
        ::funlockfile(p.out);
        for (int i = 0; i < 500 && !was_in; ++i) after_ms(1);
        EXPECT_TRUE(was_in);
        if (!was_in) ::flockfile(p.out), ::funlockfile(p.out);  // another wake, to end by
        flushes.join();
        enters.join();
    });
}

TEST(stdio, unlocks_the_stream_of_a_killed_fiber) {
    piped p;
    {
        loop l;
        fiber reader([&] { ::fgetc(p.in); }, fiber_options{.on = l});
        reader.detach();
        static_cast<void>(l.run_once(steady_now()));
    }
    std::thread([&] {
        EXPECT_EQ(::ftrylockfile(p.in), 0);
        ::funlockfile(p.in);
    }).join();
    run([&] {
        EXPECT_EQ(::ftrylockfile(p.in), 0);
        ::funlockfile(p.in);
    });
}

TEST(stdio, keeps_lines_of_fibers_and_threads_whole) {
    constexpr int lines = 200;
    piped p;
    ::setvbuf(p.out, nullptr, _IOFBF, 512);
    const auto writes = [&] {
        for (int i = 0; i < lines; ++i) ::fprintf(p.out, "%s%s%s\n", "abc", "def", "ghi");
    };
    int whole = 0;
    std::thread reader([&] {
        char line[64];
        while (::fgets(line, sizeof line, p.in) != nullptr)
            if (std::string_view(line) == "abcdefghi\n") ++whole;
    });
    {
        pool workers(2);
        std::vector<fiber> all;
        for (int i = 0; i < 6; ++i) all.emplace_back(writes, fiber_options{.on = workers});
        std::thread beside(writes);
        for (auto& f : all) f.join();
        beside.join();
    }
    p.end();
    reader.join();
    EXPECT_EQ(whole, 7 * lines);
}

}  // namespace
