"""tools/mutate.py finds what it is to find in a small tree, and changes what its rules say."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import mutate  # noqa: E402
import mutate_rules as rules  # noqa: E402


def changes(code, *of_rules, head="void f() {", tail="}"):
    """What the rules make of code in a function."""
    found = rules.mutations_of("x.cpp", f"{head}\n{code}\n{tail}\n")
    return [m.change for m in found if not of_rules or m.rule in of_rules]


class Rules(unittest.TestCase):
    def test_a_condition_is_negated_and_a_declaration_is_not(self):
        self.assertEqual(changes("if (a.b(c)) d = e;", "negate"), ["a.b(c) -> !(a.b(c))"])
        self.assertEqual(changes("if (auto* a = b()) c(); if constexpr (d) e();", "negate"), [])
        self.assertEqual(changes("if (auto a = b(); a.c) d();", "negate"), ["a.c -> !(a.c)"])

    def test_a_comparison_is_changed_with_its_operands_alone(self):
        self.assertEqual(changes("x = g(a + 1 < b.c() && d);", "compare"),
                         ["a + 1 < b.c() -> a + 1 <= b.c()"])
        self.assertEqual(changes("if (k) return a == b;", "compare"), ["a == b -> a != b"])
        self.assertEqual(changes("std::vector<int> v; g<int>(1);", "compare"), [])
        self.assertEqual(changes("x = g<int>(a) - 1;", "arithmetic"),
                         ["g<int>(a) - 1 -> g<int>(a) + 1"])

    def test_both_results_of_a_condition_are_exchanged(self):
        self.assertEqual(changes("return a == b ? c(1, 2) : d;", "branch"),
                         ["a == b ? c(1, 2) : d -> a == b ? d : c(1, 2)"])

    def test_a_number_is_one_larger_where_it_is_no_constant_of_the_compiler(self):
        self.assertEqual(changes("x = 3;", "constant"), ["3 -> 3 + 1"])
        self.assertEqual(changes("return true;", "constant"), ["true -> false"])
        for code in ("constexpr int n = 3;", "std::array<int, 3> a;", "static_assert(n == 3);",
                     "switch (n) { case 3: break; }", "if constexpr (n == 3) g();",
                     "WEFT_DEBUG_ASSERT(n == 3);", "using a = b<3>;", 'WEFT_ASSERT(n == 3, "x: I1");'):
            self.assertEqual(changes(code, "constant", "compare"), [], code)

    def test_what_another_build_compiles_is_left_alone(self):
        code = ("#if WEFT_TSAN\na = 1;\n#elif WEFT_LINUX && !WEFT_ASAN\na = 2;\n#else\na = 3;\n#endif\n"
                "#if other\na = 4;\n#else\na = 5;\n#endif\nif constexpr (WEFT_ASAN) { a = 6; }")
        self.assertEqual(changes(code, "constant"), [f"{n} -> {n} + 1" for n in (2, 4, 5)])

    def test_calls_and_assignments_are_left_out_and_declarations_are_not(self):
        self.assertEqual(changes("a->b(c, [&] { d(); });", "call"),
                         ["a->b(c, [&] { d(); }); left out", "d(); left out"])
        self.assertEqual(changes("*a().b += 2;", "store"), ["*a().b += 2; left out"])
        self.assertEqual(changes("const std::lock_guard held(lock); T x = y; T z{};",
                                 "call", "store", "deregister", "wake"), [])
        self.assertEqual(changes("static_cast<void>(x); for (;; i += 2) {}", "call", "store"), [])
        self.assertEqual(changes("if (x) waiter.wake(); else list.erase(n);", "wake"),
                         ["waiter.wake(); left out"])
        self.assertEqual(changes("if (x) waiter.wake(); else list.erase(n);", "deregister"),
                         ["list.erase(n); left out"])

    def test_a_memory_order_is_weakened_in_a_call_of_its_own(self):
        self.assertEqual(changes("x = w->a.load(std::memory_order_acquire);", "order"),
                         ["load: acquire -> relaxed"])
        self.assertEqual(changes("w.fetch_add(1, std::memory_order_acq_rel);", "order"),
                         ["fetch_add: acq_rel -> acquire", "fetch_add: acq_rel -> release"])
        self.assertEqual(changes("w.load(std::memory_order_relaxed);", "order"), [])

    def test_outside_of_functions_only_a_value_to_begin_with_is_changed(self):
        self.assertEqual(changes("int a = 3; void g(); virtual void h() = 0; enum e { x = 4 };",
                                 head="struct s {", tail="};"), ["3 -> 3 + 1"])

    def test_what_is_rendered_has_its_lines_and_nests(self):
        text = "void f() {\n    if (a == b &&\n        c) // why\n        d();\n}\n"
        found = rules.mutations_of("x.cpp", text)
        for number, m in enumerate(found, 1):
            m.number = number
        out, apart = rules.rendered(text, found)
        self.assertEqual(apart, [])
        self.assertEqual(out.count("\n"), text.count("\n"))
        self.assertEqual(sorted({m.number for m in found}),
                         [n for n in range(1, 99) if f"WEFT_MUTANT({n})" in out])

    def test_a_sample_is_spread_over_rules_and_depends_on_the_seed_alone(self):
        text = "void f() {\n" + "    a = b == 1;\n" * 50 + "    if (c) d();\n}\n"
        found = rules.mutations_of("x.cpp", text)
        some = mutate.spread(found, 8, 1)
        self.assertEqual({m.rule for m in some}, {m.rule for m in found})
        self.assertEqual(some, mutate.spread(found, 8, 1))
        self.assertNotEqual(some, mutate.spread(found, 8, 2))

    def test_what_this_build_does_not_run_is_left_alone(self):
        text = "#if WEFT_VALGRIND\nvoid f() {\n    d();\n}\n#endif\n"
        self.assertEqual(rules.mutations_of("x.cpp", text), [])
        files = mutate.sources(ROOT, ["context"])
        self.assertEqual([f for f in files if "/switch_" in f],
                         [f"weft/context/detail/switch_{rules.BACKEND}.hpp"])
        self.assertIn("weft/context/detail/annotated_context.hpp", files)

    def test_what_is_told_to_a_sanitizer_is_tried_under_that_one(self):
        text = "void f() {\n    d();\n    asan.leave();\n    tsan.leave();\n    b = 1;\n}\n"
        under = {m.source: mutate.sanitizer_of(m) for m in rules.mutations_of("x.cpp", text)
                 if m.rule != "constant"}
        self.assertEqual(under, {"d();": "address", "asan.leave();": "address",
                                 "tsan.leave();": "thread", "b = 1;": None})


# One function for each verdict.
TINY = {
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
find_package(GTest REQUIRED)
file(GLOB tests CONFIGURE_DEPENDS test/tiny/*_test.cpp)
add_executable(weft_tiny_test ${tests})
set_target_properties(weft_tiny_test PROPERTIES UNITY_BUILD ON CXX_STANDARD 20)
target_include_directories(weft_tiny_test PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(weft_tiny_test PRIVATE GTest::gtest_main)
""",
    "weft/tiny/tiny.hpp": """\
#pragma once
inline bool caught(int n) { return n > 7; }
inline int survived(int n) { return n + n; }
inline int equivalent(int n) { return n > 0 ? n : 0; }
inline const char* uncompiled() { return 0; }
inline unsigned long hang(unsigned long n) {
    unsigned long i = 0;
    while (i != n) ++i;
    return i;
}
inline int unreached(int n) { return n - n; }
""",
    "test/tiny/tiny_test.cpp": """\
#include "weft/tiny/tiny.hpp"
#include <gtest/gtest.h>
TEST(tiny, all) {
    EXPECT_TRUE(caught(8));
    EXPECT_FALSE(caught(7));
    EXPECT_EQ(survived(0), 0);
    EXPECT_EQ(equivalent(-1), 0);
    EXPECT_EQ(equivalent(1), 1);
    EXPECT_EQ(uncompiled(), nullptr);
}
TEST(tiny, hangs) { EXPECT_EQ(hang(3), 3); }
""",
    "tools/mutate_equivalent.txt": """\
# why
weft/tiny/tiny.hpp: compare: n > 0 -> n >= 0
inline int equivalent(int n) { return n > 0 ? n : 0; }
n is 0 then
""",
}


class Tiny(unittest.TestCase):
    def run_on(self, tree, *arguments):
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "mutate.py"), "--root", str(tree),
                               *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def make(self, folder, **changed):
        for path, text in {**TINY, **changed}.items():
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(text)

    def test_each_verdict_is_found_and_known_in_the_next_run(self):
        with tempfile.TemporaryDirectory() as folder:
            self.make(folder)
            arguments = ("--layer", "tiny", "--sanitize", "no", "--grace", "1")
            status, said = self.run_on(folder, *arguments)
            self.assertEqual(status, 1, said)
            results = [json.loads(line) for line in
                       (Path(folder) / "build/mutate/results.jsonl").read_text().splitlines()]

            def verdicts(line, rule):
                return {r["verdict"] for r in results if (r["line"], r["rule"]) == (line, rule)}

            self.assertEqual(verdicts(2, "compare"), {"caught"}, said)
            self.assertEqual(verdicts(3, "arithmetic"), {"survived"}, said)
            self.assertEqual(verdicts(4, "compare"), {"equivalent"}, said)
            self.assertEqual(verdicts(5, "constant"), {"uncompiled"}, said)
            self.assertEqual([(r["verdict"], r["how"]) for r in results
                              if (r["line"], r["rule"]) == (8, "arithmetic")], [("caught", "hangs")], said)
            self.assertEqual(verdicts(11, "arithmetic"), {"unreached"}, said)
            again, said = self.run_on(folder, *arguments)
            self.assertEqual(again, 1, said)
            self.assertIn(f"{len(results)} are known", said)
            self.assertNotIn("builds", said)

    def test_what_survived_is_tried_again_with_new_tests_and_explained_by_a_new_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            self.make(folder, **{"tools/mutate_equivalent.txt": ""})
            arguments = ("--layer", "tiny", "--rule", "compare", "--rule", "arithmetic", "--sanitize",
                         "no", "--grace", "1")
            _, said = self.run_on(folder, *arguments)
            self.assertIn("survived: weft/tiny/tiny.hpp:3: arithmetic", said)
            self.assertIn("survived: weft/tiny/tiny.hpp:4: compare", said)
            self.make(folder, **{"test/tiny/tiny_test.cpp": TINY["test/tiny/tiny_test.cpp"] +
                                 "TEST(tiny, doubles) { EXPECT_EQ(survived(1), 2); }\n"})
            _, said = self.run_on(folder, *arguments)
            self.assertNotIn("survived: weft/tiny/tiny.hpp:3: arithmetic", said)
            self.assertIn("equivalent: weft/tiny/tiny.hpp:4: compare", said)

    def test_a_count_is_of_each_layer_that_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            self.make(folder, **{"weft/large/large.hpp": TINY["weft/tiny/tiny.hpp"]})
            _, said = self.run_on(folder, "--layer", "tiny", "--layer", "large", "--count", "3",
                                  "--list")
            self.assertEqual([said.count(f"weft/{layer}/") for layer in ("tiny", "large")], [3, 3])

    def test_tests_that_fail_by_themselves_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            self.make(folder, **{"test/tiny/tiny_test.cpp":
                                 '#include "weft/tiny/tiny.hpp"\n#include <gtest/gtest.h>\n'
                                 "TEST(tiny, wrong) { EXPECT_TRUE(caught(7)); }\n"})
            status, said = self.run_on(folder, "--at", "weft/tiny/tiny.hpp:2")
            self.assertEqual(status, 2, said)
            self.assertIn("tiny.wrong", said)

    def test_misuse_is_one_line_and_exit_status_2(self):
        with tempfile.TemporaryDirectory() as folder:
            self.make(folder)
            for arguments in (["--bogus"], ["--layer", "none"], ["--at", "weft/tiny/tiny.hpp"]):
                status, said = self.run_on(folder, *arguments)
                self.assertEqual((status, len(said.splitlines())), (2, 1), said)


if __name__ == "__main__":
    unittest.main()
