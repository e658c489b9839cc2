#!/usr/bin/env python3
"""Compares the ABI of libweft.so of two commits, by abidiff (libabigail; Debian: abigail-tools), and
prints its report and a verdict. Each commit is built from its own files alone, in build/abi/<commit>,
as a release with debug information, and what is installed of it is kept there for the next time.

  tools/abi.py v0.2.0          that commit, and HEAD
  tools/abi.py v0.2.0 main     that commit, and the other

A type that no installed header has is private, and is not compared. What a program has compiled into
itself (templates, inline functions, macros) abidiff does not see.

Exit: 0 the same, or something was added; 1 incompatible; 2 misuse, or a commit does not build.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from arguments import Arguments, misuse_of

ROOT = Path(__file__).resolve().parent.parent
# Bits of abidiff's exit status. It does not call a changed layout incompatible for sure, so what is
# compatible is found by leaving out what was added.
FAILED, CHANGED = 1 | 2, 4 | 8
misuse = misuse_of("abi")


class Refused(Exception):
    """Why nothing can be compared."""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise Refused(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-2000:]}".rstrip())
    return done.stdout


def full_name(repository, commit):
    done = subprocess.run(["git", "-C", repository, "rev-parse", "--verify", "--quiet", "--end-of-options",
                           f"{commit}^{{commit}}"], text=True, capture_output=True)
    if done.returncode != 0:
        raise Refused(f"{repository} has no commit {commit}")
    return done.stdout.strip()


def installed(repository, commit, made):
    """The tree of the commit with libweft.so and its headers."""
    folder = made / commit[:12]
    tree = folder / "tree"
    if (folder / "whole").exists():
        return tree
    shutil.rmtree(folder, ignore_errors=True)
    source, built = folder / "source", folder / "build"
    source.mkdir(parents=True)
    archive = folder / "source.tar"
    run("git", "-C", repository, "archive", "--output", archive, commit)
    run("tar", "-xf", archive, "-C", source)
    run("cmake", "-S", source, "-B", built, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG -g", "-DWEFT_SHARED=ON", "-DWEFT_UNITY=ON",
        "-DWEFT_TESTS=OFF", "-DWEFT_BENCH=OFF", "-DWEFT_EXAMPLES=OFF")
    try:
        run("cmake", "--build", built, "--target", "weft_shared")
    except Refused as why:
        raise Refused(f"{commit[:12]} makes no libweft.so: {why}") from None
    run("cmake", "--install", built, "--prefix", tree, "--component", "shared")
    archive.unlink()
    shutil.rmtree(source)
    shutil.rmtree(built)
    (folder / "whole").touch()
    return tree


def abidiff(before, after, *options):
    """(exit status, report) of two trees."""
    command = ["abidiff", *options, "--headers-dir1", before / "include", "--headers-dir2", after / "include",
               before / "lib/libweft.so", after / "lib/libweft.so"]
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode < 0 or done.returncode & FAILED:
        raise Refused(f"abidiff ended with {done.returncode}: {done.stdout[-2000:]}".rstrip())
    return done.returncode, done.stdout


def compare(before, after):
    """(exit status, verdict, report) of two trees."""
    status, report = abidiff(before, after)
    if not status & CHANGED:
        return 0, "the same", report
    if not abidiff(before, after, "--no-added-syms")[0] & CHANGED:
        return 0, "compatible, something was added", report
    return 1, "incompatible", report


def main(words=None):
    parser = Arguments("abi", __doc__)
    parser.add_argument("commits", nargs="*", metavar="commit", help="from, and to (HEAD by default)")
    parser.add_argument("--repository", type=Path, default=ROOT, help="by default the one this file is in")
    options = parser.parse_args(words)
    if not 1 <= len(options.commits) <= 2:
        misuse("say from which commit, and perhaps to which: make abi FROM=v0.2.0 TO=main")
    try:
        if not shutil.which("abidiff"):
            raise Refused("abidiff is not installed (Debian: abigail-tools)")
        names = [*options.commits, "HEAD"][:2]
        commits = [full_name(options.repository, name) for name in names]
        trees = []
        for number, (name, commit) in enumerate(zip(names, commits), 1):
            print(f"[{number}/2] libweft.so of {name} ({commit[:12]})", flush=True)
            trees.append(installed(options.repository, commit, options.repository / "build/abi"))
        status, verdict, report = compare(*trees)
    except Refused as why:
        misuse(why)
    print(report, end="")
    print(f"abi: {names[0]} to {names[1]}: {verdict}")
    return status


if __name__ == "__main__":
    sys.exit(main())
