"""tools/header_examples.py finds the examples of a small tree, and compiles what a user would copy."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import header_examples  # noqa: E402

PRELUDE = """#pragma once
namespace weft { template <class T> struct task; }
namespace weft::example {
struct anything { anything() = default; template <class T> anything(T&&) {} };
}  // namespace weft::example
namespace weft::example {
namespace layer_part {
extern int given;
}
}
"""
OTHER = """// other: an example of its own:
//
//   weft::other();
#pragma once
namespace weft {
void other();
}
"""
HEADER = """// part: what it is, and a picture:
//
//      a  -->  b
//
{example}
//
// More words.
#pragma once
namespace weft {{
[[nodiscard]] int answer(int);
void tell(int);
}}
"""


class HeaderExamples(unittest.TestCase):
    def run_on(self, *example, options=()):
        """The exit status and the lines for a header with that example, from its line 5 on; the
        tree has another header, of which every example is compiled together with this one."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in (("tools/header_examples.hpp", PRELUDE),
                               ("weft/base/other.hpp", OTHER),
                               ("weft/layer/part.hpp",
                                HEADER.format(example="\n".join(f"//   {e}" for e in example)))):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            done = subprocess.run([sys.executable, "-B", str(ROOT / "tools/header_examples.py"),
                                   "--root", folder, *options], capture_output=True, text=True)
            return done.returncode, (done.stdout + done.stderr).splitlines()

    def passes(self, *example, count=1, options=()):
        self.assertEqual(self.run_on(*example, options=options),
                         (0, [f"examples: no faults in {count + 1}"]))

    def refuses(self, what, *example):
        status, lines = self.run_on(*example)
        self.assertEqual(status, 1, lines)
        self.assertRegex(lines[0], what)

    def test_what_another_header_declares_is_refused_alone(self):
        self.passes("weft::other();", "weft::tell(1);")
        status, lines = self.run_on("weft::other();", options=["--alone"])
        self.assertEqual(status, 1, lines)
        self.assertRegex(lines[0], r"^weft/layer/part.hpp:5: .*other.* \(weft/layer/part.hpp alone\)")

    def test_alone_has_the_stand_ins_of_its_header(self):
        self.passes("weft::tell(given);", options=["--alone"])

    def test_a_use_of_the_header_passes(self):
        self.passes("weft::tell(weft::answer(1));")

    def test_what_a_compiler_warns_of_is_refused_at_its_line(self):
        self.refuses(r"^weft/layer/part.hpp:6: .*nodiscard",
                     "weft::tell(1);", "weft::answer(1);")

    def test_what_does_not_compile_is_refused_at_its_line(self):
        self.refuses(r"^weft/layer/part.hpp:5: ", "weft::tell(unheard_of);")

    def test_stand_ins_of_the_header_may_be_used(self):
        self.passes("weft::tell(given);")

    def test_a_fragment_may_return_an_error_and_leave_things_unused(self):
        self.passes("int n = weft::answer(1);", "if (n) return n;")

    def test_three_dots_stand_for_code(self):
        self.passes("if (weft::answer(1)) ...", "...", "auto f = [] { ... };", "weft::tell(2);")

    def test_functions_and_types_are_put_outside_and_their_uses_inside(self):
        self.passes("int twice(int n) {", "    return 2 * weft::answer(n);", "}",
                    "struct pair {", "    int a;", "    int sum() { return a; }", "};",
                    "weft::tell(twice(pair{1}.sum()));")

    def test_a_function_that_throws_nothing_is_one_too(self):
        self.passes("int half(int n = weft::answer(1)) noexcept {", "    return n / 2;", "}",
                    "weft::tell(half());")

    def test_code_that_does_not_name_weft_is_an_example_too(self):
        self.passes("int n = given;", "if (n) return n;")
        self.refuses(r"^weft/layer/part.hpp:5: ", "int n = unheard_of;")
        self.refuses(r"^weft/layer/part.hpp:5: ", "void f() { unheard_of; }")

    def test_text_code_of_the_inside_and_what_stands_deeper_are_no_examples(self):
        for text, inside in (("// - an item that goes on\n//   in a line (its second);\n", False),
                             ("// A table:\n//\n//     n = given;\n", False),
                             ("// own:\n//\n//   n = given;\n", True)):
            with self.subTest(text):
                self.assertEqual(list(header_examples.examples(text, inside)), [])

    def test_a_picture_is_no_example(self):
        self.passes("weft --> answer", count=0)


if __name__ == "__main__":
    unittest.main()
