// libsoup and glib, as they come: requests that block, and a main loop for each agent.
#include <glib-unix.h>
#include <libsoup/soup.h>

#include <algorithm>
#include <list>
#include <memory>
#include <string>

#include "test/clients/loop_laws.hpp"
#include "test/clients/stand_in.hpp"
#include "weft/hook/hook.hpp"
#include "weft/stop/stop_callback.hpp"

namespace {

using namespace std::chrono_literals;
using weft::hook::stop_answer;
using weft::hook::stop_answer_scope;
using weft::testing::call_back;
using weft::testing::callback;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;

weft::testing::stand_in& server() {
    static weft::testing::stand_in the_one("http");
    return the_one;
}

template <class T>
using object = std::unique_ptr<T, freed_by<::g_object_unref>>;

// glib repeats a wait, whatever the wait fails with, and is unwound in the end, which leaks what it
// holds. A program that wants an orderly end of glib translates a stop of the fiber: the wait fails
// with `answer`, and glib checks whether it is to continue.
template <class F>
class ended_by_stops {
public:
    ended_by_stops(stop_answer answer, F f)
        : answer_(answer), end_(weft::this_fiber::get_stop_token(), std::move(f)) {}

private:
    const stop_answer_scope answer_;
    const weft::stop_callback<F> end_;
};

// What came for a request of its own; how it failed, if it did, is the second.
std::pair<std::string, unsigned> get(const std::string& url) {
    const object<SoupSession> session(::soup_session_new());
    const ended_by_stops in_good_order(stop_answer::canceled,
                                       [&] { ::soup_session_abort(session.get()); });
    const object<SoupMessage> message(::soup_message_new("GET", url.c_str()));
    const unsigned how = ::soup_session_send_message(session.get(), message.get());
    return {how == SOUP_STATUS_OK ? message->response_body->data : "", how};
}

class glib_loop {
public:
    void after(double seconds, callback f) {
        attach(
            ::g_timeout_source_new(static_cast<guint>(seconds * 1000)),
            [](gpointer data) -> gboolean { return called(data, G_SOURCE_REMOVE); }, std::move(f));
    }
    void when_readable(int fd, callback f) {
        const auto readable = [](gint, GIOCondition, gpointer data) -> gboolean {
            return called(data, G_SOURCE_CONTINUE);
        };
        // As G_SOURCE_FUNC() does it.
        const auto any = reinterpret_cast<void (*)()>(GUnixFDSourceFunc(readable));
        attach(::g_unix_fd_source_new(fd, G_IO_IN), reinterpret_cast<GSourceFunc>(any),
               std::move(f));
    }
    void run() {
        const ended_by_stops in_good_order(stop_answer::interrupted, [this] { end(); });
        run_untold();
    }
    void run_untold() { ::g_main_loop_run(loop_.get()); }
    void end() { ::g_main_loop_quit(loop_.get()); }

private:
    using source = std::unique_ptr<GSource, freed_by<::g_source_unref>>;

    static gboolean called(gpointer f, gboolean goes_on) {
        call_back(f);
        return goes_on;
    }
    void attach(GSource* s, GSourceFunc function, callback f) {
        const source own(s);
        callbacks_.push_back(std::move(f));
        ::g_source_set_callback(s, function, &callbacks_.back(), nullptr);
        ::g_source_attach(s, context_.get());
    }

    std::list<callback> callbacks_;
    const std::unique_ptr<GMainContext, freed_by<::g_main_context_unref>> context_{
        ::g_main_context_new()};
    const std::unique_ptr<GMainLoop, freed_by<::g_main_loop_unref>> loop_{
        ::g_main_loop_new(context_.get(), FALSE)};
};

class libsoup : public weft::testing::client_test {
protected:
    void SetUp() override { server().start(); }
};
INSTANTIATE_FOR_ALL(libsoup);
class libsoup_in : public libsoup {};
INSTANTIATE_FOR_FIBERS(libsoup_in);

TEST_P(libsoup, is_answered) {
    all(10, [](int i) {
        const std::string text = "hello" + std::to_string(i);
        EXPECT_EQ(get(server().url(1, text)).first, text);
    });
}

TEST_P(libsoup, waits_concurrently) {
    all_within(600ms, "20 answers after 300 ms", 20,
               [](int) { EXPECT_EQ(get(server().url(300, "late")).first, "late"); });
}

TEST_P(libsoup, runs_loops_that_answer_each_other) {
    weft::testing::expect_answers_in_turn<glib_loop>(agent_kind());
}

TEST_P(libsoup, runs_loops_that_wait_concurrently) {
    all_within(500ms, "100 times a timer of 300 ms", 100,
               [](int) { weft::testing::run_for<glib_loop>(0.3); });
}

TEST_P(libsoup_in, can_be_stopped) {
    // glib keeps open what it opens at its first request.
    weft::run([] { get(server().url() + "/never-there"); });
    expect_stopped_at_once("soup_session_send_message", [](bool& inside) {
        inside = true;
        EXPECT_NE(get(server().url() + "/never").second, SOUP_STATUS_OK);
    });
}

TEST_P(libsoup_in, runs_loops_that_can_be_stopped) {
    weft::testing::expect_loop_stopped_at_once<glib_loop>("g_main_loop_run");
}

TEST_P(libsoup_in, is_unwound_when_its_loop_is_not_notified_of_the_stop) {
    if (WEFT_TEST_ASAN) GTEST_SKIP() << "what glib holds where it is unwound is lost";
    weft::testing::seconds best = 1h;
    for (int trial = 0; trial < 3; ++trial)
        weft::run([&] {
            weft::fiber f([] {
                glib_loop().run_untold();
                ADD_FAILURE() << "the loop came back";
            });
            weft::this_fiber::sleep_for(20ms);
            const weft::testing::stopwatch w;
            f.request_stop();
            EXPECT_TRUE(f.join().is_stopped());
            best = std::min(best, w.elapsed());
        });
    weft::testing::expect_within(10ms, "stop inside g_main_loop_run, untold", best);
}

}  // namespace
