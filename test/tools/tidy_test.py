"""Each refusal of tools/tidy.py fires on a small tree with that one fault, and not without it."""

import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tidy  # noqa: E402

# A repository in which nothing is wrong.
CLEAN = {
    "CMakeLists.txt": "weft_layer(bottom)\nweft_layer(middle bottom)\nweft_layer(top middle)\n",
    "weft/bottom/line.hpp": "#pragma once\nstruct line {};\n",
    "weft/middle/pool.hpp": '#pragma once\n#include "weft/bottom/line.hpp"\n'
                            "struct pool { line l; };\n",
    "weft/top/top.hpp": '#pragma once\n#include "weft/bottom/line.hpp"\n'
                            '#include "weft/middle/pool.hpp"\nstruct top { pool p; };\n',
    "weft/weft.hpp": '#pragma once\n#include "weft/bottom/line.hpp"\n'
                     '#include "weft/middle/pool.hpp"\n#include "weft/top/top.hpp"\n',
    "test/bottom/line_test.cpp": "",
    "test/middle/pool_test.cpp": "",
    "test/top/top_test.cpp": "// TO" "DO(perf): a mark that says its kind is allowed.\n",
    "examples/whole.cpp": "int main() {}\n",
    "examples/part.cpp": "int main() {\n    // [go]\n    if (true) {\n        return 1;\n    }\n"
                         "    // [/go]\n}\n",
    "README.md": "# weft\n\n<!-- cut: examples/whole.cpp -->\n```cpp\nint main() {}\n```\n\n"
                 "<!-- cut: examples/part.cpp [go] -->\n\n"
                 "```cpp\nif (true) {\n    return 1;\n}\n```\n"
                 "```sh\nmake test\n```\n",
}


# What a public header begins with.
HEAD = "// it: what it is.\n//\n// Design: an idea.\n//\n// Limits: none.\n//\n//   use();\n"


def run(tree, *arguments):
    """Runs tidy on a tree given as {path: text}; gives its exit status and its lines. A public
    header without a comment at its beginning gets a HEAD."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in tree.items():
            if re.fullmatch(r"weft/\w+/\w+\.hpp", path) and text.startswith("#"):
                text = HEAD + text
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(text)
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "tidy.py"), "--root", folder,
                               *arguments], capture_output=True, text=True)
        return done.returncode, (done.stdout + done.stderr).splitlines()


class Tidy(unittest.TestCase):
    def refuses(self, changes, *beginnings):
        """`changes` to the clean tree yield exactly one fault per beginning given."""
        tree = {path: text for path, text in {**CLEAN, **changes}.items() if text is not None}
        status, lines = run(tree)
        faults = [line for line in lines if not line.startswith((" ", "longest", "tidy:"))]
        self.assertEqual(status, 1, lines)
        self.assertEqual(len(faults), len(beginnings), faults)
        for fault, beginning in zip(faults, sorted(beginnings)):
            self.assertTrue(fault.startswith(beginning), f"{fault}\nis not\n{beginning}")

    def test_header_over_its_lines(self):
        version = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True).stdout
        if not version.startswith("12"):
            self.skipTest("the lines are those of GCC 12")
        rows = "# header  lines\nweft/bottom/line.hpp 2\nweft/middle/pool.hpp 3\n"
        self.refuses({"tools/header_lines.txt": rows}, "tools/header_lines.txt:3: ")

    def test_a_clean_tree_passes(self):
        status, lines = run(CLEAN)
        self.assertEqual((status, lines[-1]), (0, "tidy: no faults"), lines)

    def test_an_include_against_the_layers_is_refused(self):
        self.refuses({"weft/bottom/line.cpp": '\n#include "weft/middle/pool.hpp"\n'},
                     "weft/bottom/line.cpp:2: layer bottom may not include middle")

    def test_angle_brackets_do_not_hide_an_include(self):
        self.refuses({"weft/bottom/line.cpp": "#  include <weft/middle/pool.hpp>\n"},
                     "weft/bottom/line.cpp:1: layer bottom may not include middle")

    def test_an_include_of_the_umbrella_from_a_layer_is_refused(self):
        self.refuses({"weft/middle/pool.cpp": '#include "weft/weft.hpp"\n'},
                     "weft/middle/pool.cpp:1: layer middle may not include all of weft")

    def test_a_relative_include_is_refused(self):
        self.refuses({"weft/bottom/line.cpp": '#include "line.hpp"\n'},
                     'weft/bottom/line.cpp:1: "line.hpp": weft includes are spelt')

    DROP_IN = {"CMakeLists.txt": CLEAN["CMakeLists.txt"] + "weft_drop_in(other bottom top)\n",
               "weft/bottom/other/other.cpp": '#include "weft/top/top.hpp"\n',
               "weft/bottom/other/other.h": '#include "more.h"\n',
               "weft/bottom/other/more.h": ""}

    def test_a_drop_in_may_include_what_it_names_and_its_own_headers(self):
        status, lines = run({**CLEAN, **self.DROP_IN})
        self.assertEqual((status, lines[-1]), (0, "tidy: no faults"), lines)

    def test_what_a_drop_in_may_include_its_layer_may_not(self):
        self.refuses({**self.DROP_IN, "weft/bottom/line.cpp": '#include "weft/top/top.hpp"\n',
                      "weft/bottom/line.h": '#include "more.h"\n'},
                     "weft/bottom/line.cpp:1: layer bottom may not include top",
                     'weft/bottom/line.h:1: "more.h"')

    def test_parts_that_include_each_other_are_refused(self):
        self.refuses({"weft/middle/keeper.hpp": '#pragma once\n#include "weft/middle/pool.hpp"\n'
                                                "struct keeper {\n    pool p;\n};\n",
                      "weft/weft.hpp": CLEAN["weft/weft.hpp"] + '#include "weft/middle/keeper.hpp"\n',
                      "weft/middle/pool.cpp": '#include "weft/middle/keeper.hpp"\n',
                      "test/middle/keeper_test.cpp": ""},
                     "weft/middle/keeper:1: includes and is included by weft/middle/pool")

    def test_a_folder_without_a_layer_is_refused(self):
        self.refuses({"weft/extra/x.cpp": ""}, "weft/extra/x.cpp:1: no weft_layer(extra)")

    def test_a_layer_that_stands_before_what_it_needs_is_refused(self):
        self.refuses({"CMakeLists.txt": "weft_layer(early middle)\n" + CLEAN["CMakeLists.txt"]},
                     "CMakeLists.txt:1: layer early: middle is not above it")

    def test_a_header_that_does_not_compile_alone_is_refused(self):
        self.refuses({"weft/bottom/line.hpp": "#pragma once\nstruct line { std::size_t n; };\n"},
                     "weft/bottom/line.hpp:1: does not compile alone", "weft/top/top.hpp:1: does",
                     "weft/middle/pool.hpp:1: does", "weft/weft.hpp:1: does")

    def test_headers_that_do_not_compile_together_are_refused(self):
        self.refuses({"weft/bottom/same.hpp": "#pragma once\nstruct top {};\n",
                      "test/bottom/same_test.cpp": "", "weft/weft.hpp": None},
                     "weft/bottom/line.hpp:1: does not compile with all the others")

    def test_a_warning_in_a_header_is_refused(self):
        self.refuses({"weft/top/top.hpp": "#pragma once\ninline void f(int unused) {}\n"},
                     "weft/top/top.hpp:1: does not compile alone",
                     "weft/weft.hpp:1: does not compile alone")

    def test_a_header_without_its_test_is_refused(self):
        self.refuses({"test/middle/pool_test.cpp": None},
                     "weft/middle/pool.hpp:1: has no test test/middle/pool_test.cpp")

    def faults(self, check, changes, *beginnings):
        """`changes` to the clean tree yield these faults of one rule."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**CLEAN, **changes}.items():
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_text(text)
            tree = tidy.Tree(Path(folder))
            check(tree)
        said = [f"{path}:{line}: {message}" for path, line, message in sorted(tree.faults)]
        self.assertEqual(len(said), len(beginnings), said)
        for fault, beginning in zip(said, beginnings):
            self.assertTrue(fault.startswith(beginning), f"{fault}\nis not\n{beginning}")

    def models(self, changes, *beginnings):
        self.faults(tidy.check_models, changes, *beginnings)

    def test_an_atomic_or_a_lock_without_a_model_is_refused(self):
        for what in ("std::atomic<int> n;", "weft::atomic<int> n;", "atomic<int> n;",
                     "atomic_ref<int> r(n);", "std::atomic_flag f;", "__atomic_load_n(p, 0);",
                     "spin_lock lock_;", "static std::mutex m;", "std::shared_timed_mutex m;",
                     "pthread_mutex_t m;"):
            with self.subTest(what):
                self.models({"weft/top/a.cpp": f"// It.\n\n{what}\n"}, "weft/top/a.cpp:3: ")

    def test_the_rule_about_models_is_one_of_those_that_run(self):
        self.refuses({"weft/top/a.cpp": "// Model: none, not ended"}, "weft/top/a.cpp:1: neither")

    def test_a_model_test_or_a_reason_is_enough_and_either_of_a_pair_may_have_it(self):
        shared = "std::atomic<int> n;\n"
        self.models({"test/model/a_test.cpp": "", "test/model/b_test.cpp": "",
                     "weft/top/a.cpp": "// Model: test/model/a_test.cpp\n" + shared,
                     "weft/top/b.cpp": "// Model: test/model/a_test.cpp, test/model/b_test.cpp\n"
                                       + shared,
                     "weft/top/c.hpp": "// Model: none, one thread writes it.\n",
                     "weft/top/c.cpp": shared,
                     "weft/top/detail/d.hpp": "// Model: none, one thread writes it.\n",
                     "weft/top/d.cpp": shared, "weft/top/detail/e.hpp": shared,
                     "weft/top/e.cpp": "// Model: none, one thread writes it.\n"})

    def test_what_only_speaks_of_atomics_needs_no_model(self):
        self.models({"weft/top/a.cpp": '#include <atomic>\n// std::atomic<int>\n/* spin_lock l; */\n'
                                       'const char* s = "std::mutex m";\n'
                                       "void f(spin_lock& l, pthread_mutex_t* m);\n"
                                       "word.load(std::memory_order_acquire);\n"})

    def test_a_model_that_is_not_there_is_refused(self):
        self.models({"weft/top/a.cpp": "\n// Model: test/model/a_test.cpp\nstd::atomic<int> n;\n"},
                    "weft/top/a.cpp:2: there is no test/model/a_test.cpp")

    def test_a_reason_that_is_none_is_refused(self):
        for line in ("// Model: none", "// Model: none.", "// Model: none, ", "// Model: later",
                     "// Model: none, no full stop", "// Model: test/top/top_test.cpp"):
            with self.subTest(line):
                self.models({"weft/top/a.cpp": line + "\n"}, "weft/top/a.cpp:1: neither")

    INSIDE = {"weft/top/detail/part.hpp": "#pragma once\nnamespace weft::detail {\nstruct part {};\n"
                                          "}  // namespace weft::detail\n",
              "test/top/part_test.cpp": '#include "weft/top/detail/part.hpp"\n'}

    def orders(self, changes, *beginnings):
        self.faults(tidy.check_orders, changes, *beginnings)

    def test_a_weaker_order_without_a_comment_is_refused(self):
        for what in ("n.load(std::memory_order_relaxed)", "n.store(1, std::memory_order::release)",
                     "__atomic_load_n(&n, __ATOMIC_ACQUIRE)",
                     "n.fetch_or(\n1,\nweft::memory_order_acq_rel)"):
            with self.subTest(what):
                text = f"// It.\n\nvoid f() {{  // Runs.\n    g();\n    {what};\n}}\n"
                line = 5 + what.count("\n")
                self.orders({"weft/top/a.cpp": text}, f"weft/top/a.cpp:{line}: ")
        self.orders({"weft/top/a.cpp": "n.load();\nn.store(1, std::memory_order_seq_cst);\n"
                                       "// n.load(std::memory_order_relaxed)\n"})

    def test_the_rule_about_orders_is_one_of_those_that_run(self):
        self.refuses({"weft/top/a.cpp": "int a = n.load(std::memory_order_relaxed);\n"},
                     "weft/top/a.cpp:1: memory_order_relaxed without a comment")

    def test_a_comment_in_the_statement_or_above_it_or_above_its_group_is_enough(self):
        self.orders({"weft/top/a.cpp": "n.load(std::memory_order_relaxed);  // a hint\n"
                                       "g();\n"
                                       "// Relaxed: a hint.\n"
                                       "n.load(std::memory_order_relaxed);\n"
                                       "m.load(std::memory_order_relaxed);\n"
                                       "k.load(std::memory_order_relaxed);\n"
                                       "g();\n"
                                       "// Release: pairs with f().\n"
                                       "void h() {\n"
                                       "    n.store(1,\n"
                                       "            std::memory_order_release);\n"
                                       "}\n"})

    def test_a_comment_of_another_statement_is_not_enough(self):
        self.orders({"weft/top/a.cpp": "// Relaxed: a hint.\n"
                                       "n.load(std::memory_order_relaxed);\n"
                                       "g();  // Goes.\n"
                                       "n.load(std::memory_order_relaxed);\n"}, "weft/top/a.cpp:4: ")

    def test_a_declaration_may_say_all_orders_of_its_atomic(self):
        use = "void f(x& a) {\n    a.n_.store(1, std::memory_order_release);\n}\n"
        marked = "#pragma once\n// How many. Orders: relaxed, a count.\natomic<int> n_{0};\n"
        bare = "#pragma once\natomic<int> n_{0};\n"
        include = '#include "weft/top/detail/a.hpp"\n'
        self.orders({"weft/top/a.cpp": use, "weft/top/detail/a.hpp": marked})
        self.orders({"weft/top/b.cpp": include + use, "weft/top/detail/a.hpp": marked})
        self.orders({"weft/top/b.cpp": include + use, "weft/top/detail/a.hpp": bare},
                    "weft/top/b.cpp:3: ")
        self.orders({"weft/top/b.cpp": include + bare + use, "weft/top/detail/a.hpp": marked},
                    "weft/top/b.cpp:5: ")
        self.orders({"weft/top/b.cpp": use, "weft/top/detail/a.hpp": marked}, "weft/top/b.cpp:2: ")

    def test_a_name_for_an_order_is_the_order_and_may_have_the_mark(self):
        text = ("constexpr auto unordered = std::memory_order_relaxed;\n"
                "int f() {\n    return n.load(unordered);\n}\n")
        self.orders({"weft/top/a.cpp": text}, "weft/top/a.cpp:3: unordered without a comment")
        self.orders({"weft/top/a.cpp": "// Orders: counts.\n" + text})

    def test_a_header_of_detail_is_for_its_own_test_and_for_tests_of_what_is_inside(self):
        tree = {**CLEAN, **self.INSIDE,
                "test/model/top_test.cpp": '#include "weft/top/detail/part.hpp"\n'}
        self.assertEqual(run(tree)[0], 0)

    def test_users_code_that_includes_a_header_of_detail_is_refused(self):
        include = '#include "weft/top/detail/part.hpp"\n'
        self.refuses({**self.INSIDE, "examples/own.cpp": include, "docs/own.md": "\n" + include,
                      "test/top/top_test.cpp": include, "test/top/more.hpp": include},
                     "docs/own.md:2: weft/top/detail/part.hpp is not for users",
                     "examples/own.cpp:1: weft/top/detail/part.hpp is not for users",
                     "test/top/more.hpp:1: weft/top/detail/part.hpp is not for users",
                     "test/top/top_test.cpp:1: weft/top/detail/part.hpp is not for users")

    def test_a_name_outside_detail_in_a_header_of_detail_is_refused(self):
        text = ("#pragma once\nnamespace weft {\nclass known;\nstruct part {};\n"
                "namespace hook {\nstruct free {};\n}  // namespace hook\n}  // namespace weft\n")
        self.refuses({**self.INSIDE, "weft/top/detail/part.hpp": text},
                     "weft/top/detail/part.hpp:4: part is not for users")

    def test_a_name_after_a_short_namespace_without_a_comment_at_its_end_is_refused(self):
        text = ("#pragma once\nnamespace weft {\nnamespace detail {\nstruct inner {\n"
                "    int a;\n};\n}\nstruct part {};\n}\n")
        self.refuses({**self.INSIDE, "weft/top/detail/part.hpp": text},
                     "weft/top/detail/part.hpp:8: part is not for users")

    def test_a_header_of_the_budget_that_is_not_there_is_refused(self):
        version = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True).stdout
        if not version.startswith("12"):
            self.skipTest("not GCC 12, which the budget is for")
        self.refuses({"tools/header_lines.txt": "weft/top/gone.hpp 100\n"},
                     "tools/header_lines.txt:1: weft/top/gone.hpp cannot be preprocessed")

    def test_a_public_name_without_a_comment_is_refused(self):
        text = (HEAD.replace("it:", "top:") + "#pragma once\nnamespace weft {\nclass top {};\n"
                "// One.\ntemplate <class T>\nstruct one {};\n\nenum class two { a };  // two\n"
                "struct bare {};\nusing alias = bare;\nnamespace detail {\nstruct part {};\n"
                "}  // namespace detail\n}  // namespace weft\n")
        self.refuses({"weft/top/top.hpp": text}, "weft/top/top.hpp:17: alias has no comment",
                     "weft/top/top.hpp:16: bare has no comment")

    def test_a_head_that_lacks_a_part_or_has_another_order_is_refused(self):
        body = "#pragma once\nstruct top {};\n"
        for lack, text in (("`// <name>: <what>`", HEAD.replace("it: what", "What")),
                           ("`// Design:`", HEAD.replace("Design: an", "An")),
                           ("`// Limits:`", HEAD.replace("Limits: none.", "None.")),
                           ("an example", HEAD.replace("//   use();", "// use().")),
                           ("`// <name>: <what>`, `// Design:`, `// Limits:`, an example", "\n")):
            with self.subTest(lack):
                self.refuses({"weft/top/top.hpp": text + body},
                             f"weft/top/top.hpp:1: its head lacks {lack}")
        example = "//   use();\n"
        self.refuses({"weft/top/top.hpp": HEAD.replace(example, "").replace(
            "// Design", example + "//\n// Design") + body},
            "weft/top/top.hpp:1: the order of a head is")

    def test_a_pinned_type_that_deletes_copy_in_one_line_is_refused(self):
        self.refuses({"weft/top/top.hpp": HEAD + "#pragma once\nstruct top {\n    top();\n"
                      "    top(const top&) = delete;\n    int n;\n};\n"},
                     "weft/top/top.hpp:11: a pinned type has the line "
                     "`top& operator=(const top&) = delete;` below")

    def test_a_destructor_without_a_comment_is_refused(self):
        text = (HEAD + "#pragma once\nnamespace weft {\n// Three.\nstruct one {\n    ~one() {}\n"
                "};\nstruct two {  // two\n    // Closes it.\n    virtual ~two();\n};\n"
                "struct three {  // three\n    ~three() = default;\n};\nnamespace detail {\n"
                "struct four {\n    ~four() {}\n};\n}  // namespace detail\n}  // namespace weft\n")
        self.refuses({"weft/top/top.hpp": text},
                     "weft/top/top.hpp:12: say in a comment what ~one() does")

    def test_a_query_that_is_a_bare_participle_is_refused(self):
        text = ("#pragma once\nstruct top {\n    bool closed() const;\n    bool is_closed() const;\n"
                "    bool stop_requested() const;  // not bool opened()\n"
                "    bool owned_by_caller() const;\n    bool completed(int error);\n"
                "    bool proceed();\n};\n")
        self.refuses({"weft/top/top.hpp": text},
                     "weft/top/top.hpp:10: closed() is a bare participle",
                     "weft/top/top.hpp:13: owned_by_caller() is a bare participle")

    def test_an_awaitable_that_is_not_called_an_operation_is_refused(self):
        text = ("#pragma once\nstruct top {\n    struct wait_operation {};\n    struct waiting {};\n"
                "    wait_operation async_wait();\n    [[nodiscard]] waiting async_get();\n"
                "    auto async_put();  // waiting async_take()\n"
                "    void f() {\n        if (true) async_wait();\n    }\n};\n")
        self.refuses({"weft/top/top.hpp": text},
                     "weft/top/top.hpp:13: async_get returns waiting")

    def test_an_umbrella_that_lacks_a_header_or_has_one_too_many_is_refused(self):
        self.refuses({**self.INSIDE, "weft/weft.hpp": '#include "weft/top/top.hpp"\n'
                      '#include "weft/top/detail/part.hpp"\n'},
                     "weft/weft.hpp:1: lacks weft/bottom/line.hpp",
                     "weft/weft.hpp:1: lacks weft/middle/pool.hpp",
                     "weft/weft.hpp:2: weft/top/detail/part.hpp is not for all users")

    def test_layers_and_a_version_that_bazel_is_told_otherwise_are_refused(self):
        build = 'LAYERS = {\n    "bottom": [],\n    "middle": ["bottom"],\n    "top": ["middle"],\n}\n'
        tree = {"weft/version.hpp": "#define X_MAJOR 1\n#define X_MINOR 2\n#define X_PATCH 3\n",
                "MODULE.bazel": 'module(name = "weft", version = "1.2.3")\n', "BUILD.bazel": build}
        status, lines = run({**CLEAN, **tree})
        self.assertEqual((status, lines[-1]), (0, "tidy: no faults"), lines)
        self.refuses({**tree, "MODULE.bazel": 'module(name = "weft", version = "1.2")\n'},
                     "MODULE.bazel:1: the version is not 1.2.3")
        self.refuses({**tree, "BUILD.bazel": "cc_library()\n"}, "BUILD.bazel:1: has no LAYERS")
        self.refuses({**tree, "BUILD.bazel": build.replace('"top"', '"roof"')},
                     "BUILD.bazel:1: there is no layer top", "BUILD.bazel:4: layer roof")
        self.refuses({**tree, "BUILD.bazel": build.replace('["bottom"]', "[]")},
                     "BUILD.bazel:3: layer middle")

    def test_a_public_name_that_the_module_lacks_is_refused(self):
        self.refuses({"weft/top/top.hpp": "#pragma once\nnamespace weft {\n// One.\nvoid top();\n}\n",
                      "packaging/module/weft.cppm": "export module weft;\nusing weft::bottom;\n"},
                     "packaging/module/weft.cppm:2: weft::bottom is in no public header",
                     "weft/top/top.hpp:11: packaging/module/weft.cppm does not export weft::top")

    def test_a_bare_mark_is_refused_wherever_it_stands(self):
        self.refuses({"bench/x.cpp": "// TO" "DO: later\n", "tools/x.py": "\n# FIX" "ME\n",
                      "examples/CMakeLists.txt": "# TO" "DO(later): unknown kind\n"},
                     "bench/x.cpp:1: a bare", "tools/x.py:2: a bare",
                     "examples/CMakeLists.txt:1: a bare")

    def test_readme_code_without_a_source_is_refused(self):
        self.refuses({"README.md": "text\n```cpp\nint x;\n```\n"}, "README.md:2: code without")

    def test_readme_code_that_differs_from_its_example_is_refused(self):
        self.refuses({"examples/whole.cpp": "int main() { return 0; }\n"},
                     "README.md:4: code differs from examples/whole.cpp")

    def test_readme_code_that_differs_from_its_part_is_refused(self):
        self.refuses({"examples/part.cpp": "// [go]\nint x;\n// [/go]\n"},
                     "README.md:10: code differs from examples/part.cpp [go]")

    def test_a_source_of_readme_code_that_is_not_there_is_refused(self):
        self.refuses({"examples/whole.cpp": None, "examples/part.cpp": "int x;\n"},
                     "README.md:3: there is no examples/whole.cpp",
                     "README.md:9: there is no examples/part.cpp [go]")

    def test_misuse_is_one_line_and_exit_status_2(self):
        for arguments in (["--bogus"], ["--root"], ["stray"]):
            status, lines = run(CLEAN, *arguments)
            self.assertEqual((status, len(lines)), (2, 1), lines)
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "tidy.py"),
                               "--root", "/nowhere"], capture_output=True, text=True)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)

    def test_functions_are_measured_from_head_to_closing_brace(self):
        lines = textwrap.dedent("""\
            namespace x {

            int plain(int a) {
                if (a) {
                    return 1;
                }
                return 2;
            }

            void two_lines(int a,
                           int b) {
                f([&] {
                });
            }
            struct s {
                int member() const {
                    return 1;
                }
            };
            }
            """).splitlines()
        self.assertEqual(list(tidy.functions(lines)),
                         [(6, 3, "plain"), (5, 10, "two_lines"), (3, 16, "member")])

    def test_the_second_run_compiles_nothing_and_a_change_below_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for path, text in CLEAN.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)

            def faults():
                tree = tidy.Tree(root)
                tidy.check_headers(tree)
                return tree.faults

            self.assertEqual(faults(), [])
            remembered = set((root / "build" / "tidy").iterdir())
            self.assertEqual(len(remembered), 4)
            self.assertEqual(faults(), [])
            self.assertEqual(set((root / "build" / "tidy").iterdir()), remembered)
            (root / "weft/bottom/line.hpp").write_text("#pragma once\n")
            self.assertEqual([path for path, _, _ in faults()],
                             ["weft/middle/pool.hpp", "weft/top/top.hpp", "weft/weft.hpp"])


if __name__ == "__main__":
    unittest.main()
