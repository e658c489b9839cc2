"""A program that is built with another sanitizer than the library, or for another backend, does
not link, and the linker's message says what differs. One that differs in nothing that a layout depends
on links and runs.

usage: built_alike_test.py <compiler> <root> <none, address or thread> <asm or ucontext> <library>...,
where the two words say how the libraries were built. Status 77: the compiler has no sanitizers.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
USER = """#include "weft/coroutine/coroutine.hpp"
int main() {
    int turns = 0;
    weft::coroutine<> c([&] {
        ++turns;
        weft::this_coroutine::yield();
        ++turns;
    });
    c.resume();
    c.resume();
    return turns == 2 && c.done() ? 0 : 1;
}
"""
# How a sanitized program says it; what the linker quotes differs from linker to linker.
ASKS_FOR = {"none": "weft_must_be_built_without_a_sanitizer_like_this_file",
            "address": "weft_must_be_built_with_fsanitize_address_like_this_file",
            "thread": "weft_must_be_built_with_fsanitize_thread_like_this_file"}


class Builder:
    def __init__(self, compiler, root, folder, libraries):
        self.compiler, self.root, self.folder = compiler, root, Path(folder)
        self.libraries = libraries

    def command(self, *words):
        return subprocess.run([self.compiler, "-std=c++20", "-O1", *words], capture_output=True,
                              text=True, cwd=self.folder)

    def has(self, sanitizer):
        (self.folder / "empty.cpp").write_text("int main() {}\n")
        return self.command(f"-fsanitize={sanitizer}", "empty.cpp", "-o", "empty").returncode == 0

    def link(self, compiled, linked, backend, *more):
        """What the linker says of a user's file that is compiled and linked so."""
        (self.folder / "user.cpp").write_text(USER)
        flags = {kind: [] if kind == "none" else [f"-fsanitize={kind}"]
                 for kind in (compiled, linked)}
        object_file = self.command(f"-I{self.root}", f"-DWEFT_BACKEND_UCONTEXT={backend}",
                                   *flags[compiled], *more, "-c", "user.cpp", "-o", "user.o")
        if object_file.returncode != 0:
            sys.exit(f"the user's file does not compile:\n{object_file.stderr}")
        # Unused sections are dropped, as many builds do: the message must not go with them.
        done = self.command(*flags[linked], "-Wl,--gc-sections", "user.o", *self.libraries,
                            "-o", "user")
        return done.returncode, done.stderr

    def runs(self):
        return subprocess.run(["./user"], cwd=self.folder, timeout=60).returncode == 0


def expect(what, answer, sentence):
    status, said = answer
    if sentence is None and status != 0:
        sys.exit(f"{what} does not link:\n{said}")
    if sentence is not None and (status == 0 or sentence not in said):
        sys.exit(f"{what}: not refused with {sentence}:\n{said}")


def main():
    compiler, root, sanitizer, backend, *libraries = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(compiler, root, folder, libraries)
        kinds = ["none"] + [kind for kind in ("address", "thread") if builder.has(kind)]
        ucontext = int(backend == "ucontext")
        expect("what is built alike", builder.link(sanitizer, sanitizer, ucontext), None)
        for flags in (["-fno-exceptions", "-fno-rtti"], ["-fno-omit-frame-pointer"],
                      ["-fomit-frame-pointer"], ["-O0"], ["-O2", "-DNDEBUG"]):
            expect(f"{flags}", builder.link(sanitizer, sanitizer, ucontext, *flags), None)
            if not builder.runs():
                sys.exit(f"{flags}: what is linked does not run")
        for kind in kinds:
            if kind != sanitizer:
                linked = sanitizer if kind == "none" else kind  # its runtime must be there
                expect(f"{kind} over {sanitizer}", builder.link(kind, linked, ucontext),
                       ASKS_FOR[kind])
        other = "asm" if ucontext else "ucontext"
        expect("the other backend", builder.link(sanitizer, sanitizer, 1 - ucontext),
               f"weft_must_be_built_with_the_{other}_backend_like_this_file")
        if kinds == ["none"]:
            print("skipped: the compiler has no sanitizers")
            sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
