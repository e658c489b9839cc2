#!/usr/bin/env python3
"""Takes weft as others do, each way from a folder that holds nothing but what that way gives, and
builds and runs a program with it. A line for each way: PASS, FAIL with the end of what was printed,
or `skipped` with the reason.

  test/packages/packages_test.py                 all ways
  test/packages/packages_test.py pkg_config deb  these

Exit: 0 if none failed, 1 if one did, 2 misuse. What is built lies in build/packages/, what is
downloaded in folders of it that are kept, and a log of each way in build/packages/<way>.log.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import managers  # noqa: F401  the ways that it has
from way import (HERE, MADE, ROOT, WAYS, WITHOUT_TESTS, Failed, Log, Skipped, build, consumer_tests,
                 copied, fresh, from_pypi, installed, need, parts_in, programs, run_consumer, run_tests,
                 way, weft_built)


@way
def find_package(log):
    """CMake's package, of an installed tree that was moved."""
    tree = installed(log, "find_package")
    run_consumer(log, "find_package", tree, parts_in(tree))
    refused = ["cmake", "-S", HERE / "find_package", "-B", fresh("refused"),
               f"-DCMAKE_PREFIX_PATH={tree}", f"-DPROGRAMS={programs()}"]
    log.refuses("no component soup is installed; there are base context", *refused,
                "-DPARTS=soup")
    # A program under a sanitizer does not link with a weft that is built without.
    log.run("cmake", "-S", HERE / "find_package", "-B", fresh("refused"),
            f"-DCMAKE_PREFIX_PATH={tree}", f"-DPROGRAMS={programs()}", "-DPARTS=coroutine",
            "-DCMAKE_CXX_FLAGS=-fsanitize=address")
    log.refuses("weft_must_be_built_with_fsanitize_address_like_this_file", "cmake", "--build",
                MADE / "refused")


@way
def components(log):
    """A part of it, installed with what lies under it and nothing else."""
    tree = installed(log, "components", "weft", "coroutine", "context", "stack", "unwind", "base")
    if (tree / "include/weft/wait").exists() or (tree / "include/weft/posix").exists():
        raise Failed("headers of other parts are installed")
    run_consumer(log, "components", tree, ["coroutine"])
    log.refuses("no component wait is installed, which io needs; there are base", "cmake", "-S",
                HERE / "find_package", "-B", fresh("refused"), f"-DCMAKE_PREFIX_PATH={tree}", f"-DPROGRAMS={programs()}",
                "-DPARTS=io")


@way
def shared(log):
    """libweft.so, installed alone: by CMake and by pkg-config."""
    built = weft_built(log, "weft-shared", "-DWEFT_SHARED=ON")
    tree = installed(log, "shared", "weft", "shared", built=built)
    if list(tree.rglob("*.a")):
        raise Failed("archives are installed")
    library = tree / "lib/libweft.so"
    macros = dict(re.findall(r"#define WEFT_VERSION_(\w+) (\d+)",
                             (tree / "include/weft/version.hpp").read_text()))
    version = f"{macros['MAJOR']}.{macros['MINOR']}"
    if f"[libweft.so.{version}]" not in log.run("readelf", "-d", library):
        raise Failed(f"the soname is not libweft.so.{version}")
    exported = log.run("nm", "-D", "-C", "--defined-only", library).splitlines()
    foreign = [line for line in exported if "weft" not in line.lower()]
    if foreign or not any("weft::loop::" in line for line in exported):
        raise Failed(f"it exports what is not weft's: {foreign[:3]}")
    run_consumer(log, "shared", tree, ["shared"])
    flags = log.run("pkg-config", "--cflags", "--libs", "weft-shared",
                    env={"PKG_CONFIG_PATH": str(tree / "lib/pkgconfig")}).split()
    program = MADE / "shared/by_pkg_config"
    log.run(os.environ.get("CXX", "g++"), "-std=c++20", "-O2", programs() / "echo.cpp", *flags, "-o",
            program)
    log.run(program, env={"LD_LIBRARY_PATH": str(tree / "lib")})
    # Not beside the archives: there would be two of what a thread has one of.
    both = installed(log, "shared-and-archives", built=built)
    log.refuses("The INTERFACE_WEFT_SHARED property of", "cmake", "-S", HERE / "find_package", "-B",
                fresh("refused"), f"-DCMAKE_PREFIX_PATH={both}", f"-DPROGRAMS={programs()}",
                "-DPARTS=shared;io", "-DBOTH=ON")


@way
def choices(log):
    """WEFT_WITH_...: what is OFF is left out, and what is ON and not here is named."""
    libraries = {"URING": "liburing-dev", "CARES": "libc-ares-dev", "TLS": "libssl-dev"}
    configure = ["cmake", "-S", ROOT, "-B", fresh("choices"), *WITHOUT_TESTS]
    said = log.run(*configure, *(f"-DWEFT_WITH_{name}=OFF" for name in libraries))
    made = MADE / "choices/packaging"
    flags = (made / "weft.pc").read_text()
    if "is not installed" in said or re.search(r"-l(uring|cares)\b", flags):
        raise Failed("a library is looked for that is OFF")
    if (made / "weft-tls.pc").exists():
        raise Failed("weft-tls is there without OpenSSL")
    nowhere = ["cmake", "--fresh", "-S", ROOT, "-B", MADE / "refused", *WITHOUT_TESTS,
               "-DCMAKE_IGNORE_PREFIX_PATH=/usr;/usr/local;/",
               "-DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON"]
    said = log.run(*nowhere)
    log.refuses("libkqueue is not installed (Debian: none)", *nowhere, "-DWEFT_WITH_KQUEUE=ON")
    for name, package in libraries.items():
        if f"({package}) is not installed" not in said:
            raise Failed(f"{package} is not missed")
        log.refuses(f"(Debian: {package})", *nowhere, f"-DWEFT_WITH_{name}=ON")
        log.refuses(f'WEFT_WITH_{name} is "yes"; it can be one of: AUTO;ON;OFF', *nowhere,
                    f"-DWEFT_WITH_{name}=yes")


@way
def add_subdirectory(log):
    """weft as a folder of another project."""
    run_tests(log, build(log, HERE / "subdirectory", "add_subdirectory", f"-DWEFT={ROOT}",
                         "-DWEFT_UNITY=ON", f"-DPROGRAMS={programs()}", "-DFETCH=OFF"), ["echo", "hook"])
    tree = fresh("subdirectory-installed")
    log.run("cmake", "--install", MADE / "add_subdirectory", "--prefix", tree)
    if (tree / "include").exists():
        raise Failed("another project's install installs weft")


@way
def fetch_content(log):
    """FetchContent, of a copy of what is committed or about to be."""
    copy = copied(log, fresh("fetch_content-source"))
    run_tests(log, build(log, HERE / "subdirectory", "fetch_content", f"-DWEFT={copy}",
                         "-DWEFT_UNITY=ON", f"-DPROGRAMS={programs()}", "-DFETCH=ON"), ["echo", "hook"])


@way
def pkg_config(log):
    """pkg-config, by the compilers alone."""
    need("pkg-config", "pkgconf")
    tree = installed(log, "pkg_config")
    folder = fresh("pkg_config")
    env = {"PKG_CONFIG_PATH": str(tree / "lib/pkgconfig")}
    cases = [("weft", "echo.cpp"), ("weft-hook", "hook.cpp"), ("weft-posix", "c_fibers.c"),
             ("weft-libco", "libco.cpp"), ("weft-tls", "tls.cpp")]
    for package, source in cases:
        if not (tree / f"lib/pkgconfig/{package}.pc").exists():
            if package != "weft-tls":
                raise Failed(f"no {package}.pc is installed")
            continue
        flags = log.run("pkg-config", "--cflags", "--libs", package, env=env).split()
        compiler = ["cc"] if source.endswith(".c") else [os.environ.get("CXX", "g++"), "-std=c++20"]
        log.run(*compiler, "-O2", programs() / source, *flags, "-o", folder / package)
        log.run(folder / package)


def debian_mirror():
    """The one that this system uses."""
    lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for path in filter(Path.is_file, lists):
        found = re.search(r"^[^#\n]*?(https?://\S+/debian)/?\s", path.read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    return "http://deb.debian.org/debian"


@contextlib.contextmanager
def bare_debian(log, *packages):
    """The root of a Debian 12 of essential packages and these, in a temporary folder. What is
    downloaded for it is kept for the next."""
    if os.geteuid() != 0:
        raise Skipped("cpack and lintian pass; not installed: not root")
    if 'VERSION_ID="12"' not in Path("/etc/os-release").read_text():
        raise Skipped("cpack and lintian pass; not installed: not on Debian 12")
    cache = MADE / "debs"
    cache.mkdir(exist_ok=True)
    top = Path(tempfile.mkdtemp())
    root = top / "root"
    try:
        try:
            log.run("debootstrap", "--variant=minbase", f"--include={','.join(packages)}",
                    f"--cache-dir={cache}", "bookworm", root, debian_mirror())
            log.run("mount", "-t", "proc", "proc", root / "proc")
        except Failed as why:
            raise Skipped(f"cpack and lintian pass; not installed: {why}") from None
        yield root
    finally:
        subprocess.run(["umount", root / "proc"], stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", "--one-file-system", top], check=True)


def files_in(root):
    """What is in a system, but for what dpkg remembers."""
    found = (path.relative_to(root) for top in ("etc", "opt", "usr", "var")
             for path in (root / top).rglob("*"))
    remembered = re.compile("var/(log|cache|lib/dpkg/(?!info))")
    return {str(path) for path in found if not remembered.match(str(path))}


@way
def deb(log):
    """libweft-dev by CPack: clean for lintian, and used in a Debian with little else."""
    need("file", "file")
    need("dpkg-shlibdeps", "dpkg-dev")
    need("lintian", "lintian")
    need("debootstrap", "debootstrap")
    built = weft_built(log, "weft-usr", "-DCMAKE_INSTALL_PREFIX=/usr",
                       "-DWEFT_WITH_URING=ON", "-DWEFT_WITH_CARES=ON", "-DWEFT_WITH_TLS=AUTO")
    log.refuses("ON or OFF is to be said for WEFT_WITH_TLS", "cpack", "-G", "DEB", at=built)
    weft_built(log, "weft-usr", "-DWEFT_WITH_TLS=ON")
    for old in built.glob("*.deb"):
        old.unlink()
    log.run("cpack", "-G", "DEB", at=built)
    package, = built.glob("libweft-dev_*.deb")
    # Files that it shares with that of another architecture are the same, whenever it is made.
    if log.run("dpkg-deb", "--field", package, "Multi-Arch") != "same\n":
        raise Failed("the package is not Multi-Arch: same")
    made = log.run("dpkg-deb", "--info", package, "md5sums")
    time.sleep(1)
    log.run("cpack", "-G", "DEB", at=built)
    differ = set(made.splitlines()) ^ set(log.run("dpkg-deb", "--info", package, "md5sums").splitlines())
    if differ:
        raise Failed(f"made again, the package differs in {', '.join(sorted(differ))}")
    log.run("lintian", "--fail-on", "error,warning", package)
    listed = log.run("dpkg-deb", "--contents", package)
    for path in ("include/weft/weft.hpp", "lib/*/libweft_io.a", "lib/*/weft/libweft_hook.so",
                 "lib/*/cmake/weft/weft-config.cmake", "lib/*/pkgconfig/weft.pc"):
        if not re.search(rf" \./usr/{path.replace('*', '[^/]+-linux-gnu')}$", listed, re.MULTILINE):
            raise Failed(f"the package has no /usr/{path}")
    depends = re.findall(r"([\w.+-]+)(?: \([^)]*\))?(?:, |$)",
                         log.run("dpkg-deb", "--field", package, "Depends").strip())
    with bare_debian(log, "g++", "cmake", "ninja-build", "pkgconf", *depends) as root:
        def enter(*command):
            return log.run("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "chroot", root,
                           *command)

        parts = ("coroutine", "hook", "tls")
        before = files_in(root)
        work = root / "taken"
        shutil.copytree(HERE / "find_package", work / "find_package")
        shutil.copytree(programs(), work / "programs")
        shutil.copy(package, work / "weft.deb")
        enter("dpkg", "-i", "/taken/weft.deb")
        flags = enter("pkg-config", "--cflags", "--libs", "weft").split()
        enter("g++", "-std=c++20", "-O1", "/taken/programs/echo.cpp", *flags, "-o", "/taken/echo")
        enter("/taken/echo")
        enter("cmake", "-S", "/taken/find_package", "-B", "/taken/built", "-G", "Ninja",
              "-DPROGRAMS=/taken/programs", f"-DPARTS={';'.join(parts)}")
        enter("cmake", "--build", "/taken/built")
        for program in consumer_tests(parts):
            enter(f"/taken/built/{program}")
        enter("dpkg", "-r", "libweft-dev")
        left = files_in(root) - before
        if left:
            raise Failed(f"dpkg -r leaves {', '.join(sorted(left)[:5])}")


def newer_cmake(log):
    """A CMake that knows modules: the one that is installed, or one of PyPI's."""
    version = re.search(r"(\d+)\.(\d+)", log.run("cmake", "--version"))
    if tuple(map(int, version.groups())) >= (3, 28):
        return "cmake"
    return from_pypi(log, "newer_cmake", "cmake>=3.28") / "cmake"


@way
def module(log):
    """`import weft;`, of an installed tree that was moved; with Clang."""
    need("clang++-19", "clang-19")
    need("clang-scan-deps-19", "clang-tools-19")
    cmake = newer_cmake(log)
    clang = "-DCMAKE_CXX_COMPILER=clang++-19"
    built = weft_built(log, "weft-module", clang, "-DWEFT_MODULE=ON", cmake=cmake)
    tree = installed(log, "module", built=built, cmake=cmake)
    run_tests(log, build(log, HERE / "module", "module", f"-DCMAKE_PREFIX_PATH={tree}", clang,
                         f"-DPROGRAMS={programs()}", cmake=cmake), ["echo"])
    log.refuses("is not supported", cmake, "-S", ROOT, "-B", fresh("refused"), *WITHOUT_TESTS,
                "-DWEFT_MODULE=ON", "-DCMAKE_CXX_COMPILER=g++")


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        print(f"packages: {message}", file=sys.stderr)
        sys.exit(2)


def main():
    parser = Arguments(prog="packages_test.py", description=__doc__,
                       formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="way", help=f"of {', '.join(WAYS)}")
    options = parser.parse_args()
    for name in options.ways:
        if name not in WAYS:
            parser.error(f"there is no way {name}; there are {', '.join(WAYS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what a way has made is removed
    MADE.mkdir(parents=True, exist_ok=True)
    failed = skipped = 0
    chosen = options.ways or list(WAYS)
    for number, name in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {name:17}", end=" ", flush=True)
        began = time.monotonic()
        try:
            WAYS[name](Log(name))
            print(f"PASS {time.monotonic() - began:4.0f} s  {WAYS[name].__doc__}")
        except Skipped as why:
            skipped += 1
            print(f"skipped: {why}")
        except (Failed, subprocess.TimeoutExpired) as why:
            failed += 1
            print(f"FAIL {time.monotonic() - began:4.0f} s  {why}")
    print(f"packages: {'FAIL' if failed else 'PASS'}, {len(chosen) - failed - skipped} of "
          f"{len(chosen)} ways, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
