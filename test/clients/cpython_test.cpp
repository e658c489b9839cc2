// CPython, as it comes: its modules for threads, sockets and processes, by agents that have a
// thread state each and one interpreter in common.
#include <Python.h>

#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/stand_in.hpp"
#include "weft/hook/hook.hpp"

#if WEFT_TEST_ASAN
// What the interpreter has at the end of the program, which does not end it, and what its module of
// hashes has of OpenSSL.
extern "C" const char* __lsan_default_suppressions() { return "leak:libpython3\nleak:libcrypto\n"; }
#endif

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::kind;

constexpr int party_count = 5;

weft::testing::stand_in& server() {
    static weft::testing::stand_in the_one("http");
    return the_one;
}

// What every agent finds imported.
constexpr const char* prelude = R"(
import asyncio, queue, socket, subprocess, threading, time, urllib.request

def get(url):
    return urllib.request.urlopen(url).read().decode()

def fails(error, function, *arguments):
    try:
        function(*arguments)
    except error:
        return True
    return False

class Inside:
    """How many are inside of a `with` at once, at most."""
    def __init__(self):
        self.now = self.most = self.ever = 0
    def __enter__(self):
        self.now += 1
        self.ever += 1
        self.most = max(self.most, self.now)
    def __exit__(self, *how):
        self.now -= 1
)";

// Whether `code` ran to its end; what it raised is printed to standard error. Names that are not
// declared global are local to it.
bool does(const std::string& code) {
    const PyGILState_STATE before = ::PyGILState_Ensure();
    PyObject* const all = ::PyModule_GetDict(::PyImport_AddModule("__main__"));
    PyObject* const own = ::PyDict_New();
    PyObject* const result = ::PyRun_String(code.c_str(), Py_file_input, all, own);
    if (result == nullptr) ::PyErr_Print();
    ::Py_XDECREF(result);
    ::Py_DECREF(own);
    ::PyGILState_Release(before);
    return result != nullptr;
}

std::string quoted(const std::string& s) { return "'" + s + "'"; }

class cpython : public weft::testing::client_test {
protected:
    static void SetUpTestSuite() {
        if (::Py_IsInitialized() != 0) return;
        ::Py_InitializeEx(0);
        ::PyEval_SaveThread();
        const PyGILState_STATE before = ::PyGILState_Ensure();
        ASSERT_EQ(::PyRun_SimpleString(prelude), 0);
        ::PyGILState_Release(before);
    }
    void SetUp() override { server().start(); }

    // Each agent runs the code, and all of them in time.
    static void all_do_within(weft::testing::seconds bar, const std::string& code) {
        all_within(bar, code, party_count, [&](int) { EXPECT_TRUE(does(code)); });
    }
    // One fiber at a time is inside `lock` across a wait, and others continue to run.
    static void expect_excludes(const std::string& lock) {
        ASSERT_TRUE(does("global lock, inside; lock = " + lock + "; inside = Inside()"));
        all_within(500ms, lock + " held over a wait", 2 * party_count, [](int i) {
            EXPECT_TRUE(does(i % 2 == 0
                                 ? "with lock, inside: get(" + quoted(server().url(30, "x")) + ")"
                                 : "time.sleep(0.2)"));
        });
        EXPECT_TRUE(does("assert inside.most == 1 and inside.ever % 5 == 0, vars(inside)"));
    }
};
INSTANTIATE_FOR_ALL(cpython);
class cpython_in : public cpython {};
INSTANTIATE_FOR_FIBERS(cpython_in);

TEST_P(cpython, is_answered) {
    all(20, [](int i) {
        const std::string text = "hello" + std::to_string(i);
        EXPECT_TRUE(does("assert get(" + quoted(server().url(1, text)) + ") == " + quoted(text)));
    });
}

TEST_P(cpython, sleeps_concurrently) { all_do_within(450ms, "time.sleep(0.3)"); }

TEST_P(cpython, reads_concurrently) {
    all_do_within(500ms, "assert get(" + quoted(server().url(300, "late")) + ") == 'late'");
}

TEST_P(cpython, holds_a_lock_across_a_wait) { expect_excludes("threading.Lock()"); }

// Its owner is identified by pthread_self().
TEST_P(cpython, holds_a_recursive_lock_across_a_wait) {
    weft::hook::options o = weft::hook::get_options();
    o.pthread_self = true;
    weft::hook::set_options(o);
    expect_excludes("threading.RLock()");
    o.pthread_self = false;
    weft::hook::set_options(o);
}

TEST_P(cpython, joins_threads) {
    all_do_within(500ms,
                  "t = threading.Thread(target=time.sleep, args=(0.3,)); t.start(); t.join()");
}

TEST_P(cpython, waits_for_events_of_threads_and_of_each_other) {
    ASSERT_TRUE(does("global e; e = threading.Event(); threading.Timer(0.2, e.set).start()"));
    all_do_within(500ms, "assert e.wait(10)");
    ASSERT_TRUE(does("global q; q = queue.Queue(1)"));
    all(2 * party_count, [](int i) {
        EXPECT_TRUE(does(i % 2 == 0 ? "for n in range(20): q.put(n)"
                                    : "assert all(0 <= q.get() < 20 for n in range(20))"));
    });
    EXPECT_TRUE(does("assert q.empty()"));
}

TEST_P(cpython, honours_its_timeouts) {
    ASSERT_TRUE(does("global held; held = threading.Lock(); assert held.acquire()"));
    all_do_within(450ms, "assert not held.acquire(timeout=0.3)");
    all_do_within(500ms, "assert fails(OSError, urllib.request.urlopen, " +
                             quoted(server().url() + "/never") + ", None, 0.3)");
}

TEST_P(cpython, runs_processes_concurrently) {
    all_do_within(600ms,
                  "assert subprocess.run(['sh', '-c', 'sleep 0.3; echo hi; exit 3'],"
                  " capture_output=True).args[0] == 'sh'");
    all(party_count, [](int) {
        EXPECT_TRUE(
            does("r = subprocess.run(['sh', '-c', 'cat; exit 3'], input=b'x' * 200000,"
                 " capture_output=True)\n"
                 "assert r.returncode == 3 and len(r.stdout) == 200000"));
    });
}

TEST_P(cpython, runs_an_event_loop_in_each_flow) {
    all_do_within(500ms, "asyncio.run(asyncio.sleep(0.3))");
}

TEST_P(cpython_in, can_be_stopped) {
    ASSERT_TRUE(does("global held; held = threading.Lock(); assert held.acquire()"));
    for (const std::string& code :
         {std::string("assert fails(OSError, time.sleep, 60)"),
          "assert fails(OSError, get, " + quoted(server().url() + "/never") + ")",
          std::string("assert not held.acquire()")})
        expect_stopped_at_once(code, [&](bool& inside) {
            inside = true;
            EXPECT_TRUE(does(code));
        });
}

}  // namespace
