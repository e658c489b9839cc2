"""tools/thread_local_check.py finds each way in which a compiler keeps the address of a thread-local
over a wait, and nothing where it is asked for anew."""

import contextlib
import io
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import thread_local_check  # noqa: E402

CODE = """
#include <cerrno>
#include <cstring>
#include <netdb.h>
namespace __cxxabiv1 { extern "C" unsigned* __cxa_get_globals() noexcept __attribute__((const)); }
void wait_outside();
__attribute__((noinline)) int* errno_anew() noexcept { asm volatile("" ::: "memory"); return &errno; }
extern thread_local int elsewhere;
thread_local int here[64];
int* volatile seen;

int kept_in_a_register() { const int before = errno; wait_outside(); errno = before; return 1; }
int kept_h_errno() { const int before = h_errno; wait_outside(); return h_errno + before; }
int kept_where_it_jumps(int n) {
    while (n-- > 0) { if (errno == 7) return 1; wait_outside(); }
    return 0;
}
__attribute__((noinline)) void waits_inside() { wait_outside(); asm volatile(""); }
int kept_over_what_waits_inside() { const int b = errno; waits_inside(); return b + errno; }
int kept_over_a_pointer(void (*f)()) { const int b = errno; f(); return b + errno; }
int shared_by_hand() { int* const p = &here[3]; seen = p; wait_outside(); return *p; }
int kept_by_hand_on_the_stack() {
    int* p = &here[3];
    asm volatile("" : "+m"(p));
    wait_outside();
    return *p;
}
int shared_handed_on() { int* const p = &here[3]; wait_outside(); seen = p; return *p; }
unsigned kept_exceptions() {
    using __cxxabiv1::__cxa_get_globals;
    const unsigned b = *__cxa_get_globals();
    wait_outside();
    return b + *__cxa_get_globals();
}
int kept_for_a_handler() {
    errno = 1;
    try { wait_outside(); } catch (...) { return errno; }
    return 0;
}

int right_anew() { const int before = *errno_anew(); wait_outside(); *errno_anew() = before; return 1; }
int right_before() { const int before = errno; wait_outside(); return before; }
int right_after() { wait_outside(); return errno; }
int right_harmless(char* to, unsigned long n) { errno = 1; std::memset(to, 0, n); return errno; }
int right_in_a_part_of_a_register() {
    long v = reinterpret_cast<long>(&errno);
    asm volatile("orl $-1, %k0" : "+r"(v));
    wait_outside();
    return static_cast<int>(v);
}
int shared_direct() { here[3] = 1; wait_outside(); return here[3]; }
[[noreturn]] __attribute__((noinline)) void ends() { wait_outside(); __builtin_abort(); }
int right_as_it_ends(int n) { errno = 1; if (n == 2) ends(); return errno; }
"""


@unittest.skipIf(platform.machine() != "x86_64" or shutil.which("objdump") is None,
                 "it reads x86-64 by objdump")
class ThreadLocalCheck(unittest.TestCase):
    def found(self, *options):
        compiler = shlex.split(os.environ.get("CXX") or "g++")
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "planted.cpp"
            source.write_text(CODE)
            made = source.with_suffix(".o")
            subprocess.run([*compiler, "-std=c++20", *options, "-c", str(source), "-o", str(made)],
                           check=True, capture_output=True)
            names = thread_local_check.plain([f[1] for f in thread_local_check.check([made])])
            with contextlib.redirect_stdout(io.StringIO()) as said:
                sys.argv = ["thread_local_check", str(made)]
                code = thread_local_check.main()
        return {name.split("(")[0] for name in names.values()}, code, said.getvalue()

    def test_each_planted_one_is_found_and_no_other(self):
        planted = set(re.findall(r"^\w+ (kept\w*)\(", CODE, re.MULTILINE))
        self.assertGreater(len(planted), 5)
        for options in ("-O2", "-O3 -fcf-protection=branch", "-O2 -fPIC"):
            with self.subTest(options=options):
                found, code, said = self.found(*options.split())
                # In a shared object a thread-local of the program is one of these, too.
                shared = {f for f in found if f.startswith("shared")}
                self.assertEqual(found - shared, planted, said)
                self.assertEqual(bool(shared), "-fPIC" in options, said)
                self.assertEqual(code, 1)
                self.assertIn("the address of errno is kept over wait_outside()", said)

    def test_says_so_where_there_is_nothing_to_read(self):
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                sys.argv = ["thread_local_check", folder]
                self.assertEqual(thread_local_check.main(), 2)
            self.assertIn("no object code", said.getvalue())


if __name__ == "__main__":
    unittest.main()
