"""tools/compiler_traps.py finds each form that GCC 12 compiles wrongly and no form that it compiles
right; where $CXX is that compiler, what it makes of each form is asked of the forms themselves."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import compiler_traps  # noqa: E402

FORMS = HERE / "compiler_traps_forms.txt"


def name_of(line):
    return re.search(r"(?:task<\w+>|auto) (\w+)", line).group(1)


class CompilerTraps(unittest.TestCase):
    def setUp(self):
        self.lines = FORMS.read_text().splitlines()
        self.marked = {number for number, line in enumerate(self.lines, 1)
                       if line.endswith("// trap")}

    def test_each_form_is_found_and_no_other(self):
        found = set(compiler_traps.traps(FORMS.read_text()))
        self.assertEqual([self.lines[n - 1] for n in sorted(self.marked ^ found)], [])
        self.assertGreater(len(found), 20)

    def test_the_forms_are_those_that_the_compiler_gets_wrong(self):
        compiler = shlex.split(os.environ.get("CXX") or "g++")
        version = subprocess.run([*compiler, "--version"], capture_output=True, text=True).stdout
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "forms"
            source = program.with_suffix(".cpp")
            source.write_text(FORMS.read_text())
            subprocess.run([*compiler, "-std=c++20", str(source), "-o", str(program)], check=True,
                           capture_output=True)
            wrong = set(subprocess.run([str(program)], capture_output=True, text=True,
                                       check=True).stdout.split())
        if "clang" not in version and re.search(r"\b12\.[0-2]\.", version):
            self.assertEqual(wrong, {name_of(self.lines[n - 1]) for n in self.marked})
        else:
            self.assertLessEqual(wrong, {name_of(self.lines[n - 1]) for n in self.marked})

    def found(self, text):
        return list(compiler_traps.traps(text))

    def test_comments_and_literals_declare_nothing_and_await_nothing(self):
        self.assertEqual(self.found(
            'task<> f() {\n  if (co_await g()) h("int x = 1;");  // int y = 2;\n}'), [2])
        self.assertEqual(self.found('task<> f() {\n  if (h("co_await")) co_await g();\n}'), [])

    def test_each_coroutine_of_a_file_is_looked_at_alone(self):
        self.assertEqual(self.found("task<> f() { int x = 1; co_await g(x); }\n"
                                    "task<> h() noexcept { while (co_await g()) {} }\n"), [2])

    def test_a_member_defined_outside_is_a_function(self):
        self.assertEqual(self.found(
            "weft::task<int> a::b(int n) const {\n"
            "    if (!co_await c(n)) co_return 0;\n    co_return 1;\n}"), [2])

    def test_an_operator_is_no_await(self):
        self.assertEqual(self.found("auto f(A a) { if (has(a)) return operator co_await(a); }"), [])

    def test_a_program_says_where_and_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a.cpp").write_text("task<> f() { if (co_await g()) h(); }\n")
            (Path(folder) / "b.cpp").write_text("task<> f() { const bool b = co_await g(); }\n")
            done = subprocess.run([sys.executable, compiler_traps.__file__, folder],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([Path(line.split(":")[0]).name for line in done.stdout.splitlines()[:-1]],
                         ["a.cpp"])


if __name__ == "__main__":
    unittest.main()
