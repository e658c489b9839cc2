"""Every object of weft's notes indirect-branch tracking (IBT) and none claims shadow stacks
(SHSTK), so that no program with weft in it does, even if its own code claims both.

usage: elf_notes_test.py <c++ compiler> <root of the repository> <archive>... Status 77: cannot be
tested here, with the reason.
"""

import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def features(path):
    """{object: its x86 features}, of an object or of each in an archive."""
    found = {}
    name = Path(path).name
    for line in run("readelf", "-W", "-h", "-n", path).splitlines():
        if line.startswith("File: "):
            name = line.removeprefix("File: ")
        elif "ELF Header" in line:
            found[name] = set()
        elif match := re.search(r"x86 feature: (.*)$", line):
            found[name] |= set(match.group(1).split(", "))
    return found


def check_objects(archives):
    if not archives:
        sys.exit("no archive was named")
    count = 0
    for archive in archives:
        notes = features(archive)
        if not notes:
            sys.exit(f"{archive} has no object")
        for name, noted in notes.items():
            if noted != {"IBT"}:
                sys.exit(f"{name} of {archive} notes {noted or 'nothing'}, not IBT alone")
        count += len(notes)
    print(f"{count} objects of {len(archives)} archives note IBT, none SHSTK")


def check_linked(compiler, root, archives, folder):
    """The linker keeps what all objects claim. `-r` leaves the C runtime's own out of it."""
    flags = ("-std=c++20", "-O2", "-fcf-protection=full", "-c")
    alone, user = folder / "alone.o", folder / "user.o"
    (folder / "alone.cpp").write_text("int alone() { return 1; }\n")
    run(compiler, *flags, folder / "alone.cpp", "-o", alone)
    run(compiler, *flags, f"-I{root}", root / "test/programs/user.cpp", "-o", user)
    for path in (alone, user):
        if features(path)[path.name] != {"IBT", "SHSTK"}:
            sys.exit(f"{path.name} claims {features(path)}: this test would see nothing")

    run("ld", "-r", alone, user, "-o", folder / "without.o")
    if features(folder / "without.o")["without.o"] != {"IBT", "SHSTK"}:
        sys.exit("the linker does not keep what all objects claim: this test would see nothing")
    run("ld", "-r", alone, user, "--whole-archive", *archives, "-o", folder / "with.o")
    if features(folder / "with.o")["with.o"] != {"IBT"}:
        sys.exit(f"a program with weft in it claims {features(folder / 'with.o')}")
    return user


def check_landings(user):
    """Where a switch comes back to, in code that is built for IBT, is an endbr64."""
    lines = [line.split("\t", 1)[1].strip()
             for line in run("objdump", "-d", "--no-show-raw-insn", user).splitlines()
             if re.match(r" +[0-9a-f]+:\t", line)]
    found = [n for n, line in enumerate(lines) if re.match(r"jmp +\*\(%rsi\)", line)]
    # One that saves where it is to come back to. The last jump of a coroutine saves nothing.
    jumps = [n for n in found
             if any(re.match(r"mov +%rax,\(%rdi\)", line) for line in lines[max(n - 8, 0):n])]
    print(f"{len(jumps)} inlined switches, {len(found) - len(jumps)} last ones")
    if not jumps:
        sys.exit("no inlined switch was found")
    for n in jumps:
        if lines[n + 1] != "endbr64":
            sys.exit(f"a switch comes back to {lines[n + 1]}")


def main():
    compiler, root, *archives = sys.argv[1:]
    if platform.machine() != "x86_64":
        print("skipped: the notes of x86-64 alone are known")
        sys.exit(SKIPPED)
    for tool in ("readelf", "objdump", "ld"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed")
            sys.exit(SKIPPED)
    check_objects(archives)
    with tempfile.TemporaryDirectory() as folder:
        check_landings(check_linked(compiler, Path(root), archives, Path(folder)))


if __name__ == "__main__":
    main()
