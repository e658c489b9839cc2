"""Ways to take weft by package managers, and by builds other than CMake's."""

import json
import os
import re
import shutil
from pathlib import Path

from way import (CONSUMER, HERE, MADE, ROOT, Failed, Skipped, consumer_tests, copied, documented, fresh,
                 from_pypi, need, programs, run_consumer, way)

VERSION = ".".join(re.findall(r"_(?:MAJOR|MINOR|PATCH) (\d+)", (ROOT / "weft/version.hpp").read_text()))


def application(name, **files):
    """A folder with one program, main.cpp, and these files."""
    folder = fresh(name)
    shutil.copy(programs() / "echo.cpp", folder / "main.cpp")
    for path, text in files.items():
        (folder / path).write_text(text)
    return folder


@way
def conan(log):
    """Conan 2, as docs/install.md says; TLS is left out by its option."""
    bin_folder = from_pypi(log, "conan-2", "conan>=2,<3")
    page = documented("Conan")
    folder = application("conan", **{"conanfile.txt": page["ini"], "CMakeLists.txt": page["cmake"]})
    copied(log, folder / "weft")
    home = fresh("conan-home")
    env = {"CONAN_HOME": str(home), "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    (home / "global.conf").write_text("tools.cmake.cmaketoolchain:generator=Ninja\n"
                                      "tools.cmake.cmaketoolchain:extra_variables="
                                      "{'WEFT_UNITY': 'ON'}\n")
    log.run("conan", "profile", "detect", env=env)
    with open(home / "profiles/default", "a") as profile:
        profile.write("[options]\nweft/*:with_tls=False\n")
    log.run("sh", "-ec", page["sh"], at=folder, env=env)
    log.run(folder / "build/app")
    there = {path.stem for path in home.glob("p/b/*/p/lib/pkgconfig/*.pc")}
    if there != {"weft", "weft-hook", "weft-posix", "weft-libco"}:
        raise Failed(f"the package has {there}")


@way
def meson(log):
    """Meson, weft as a subproject: as docs/install.md says, and each part that has a dependency."""
    need("meson", "meson")
    page = documented("Meson")
    folder = application("meson", **{"meson.build": page["meson"]})
    copied(log, folder / "weft")
    # As it is typed there, but each part compiled as one unit, which is less work.
    log.run("sh", "-ec", page["sh"].replace("meson setup", "meson setup --unity=on -Dunity_size=999"),
            at=folder)
    log.run(folder / "build/app")
    shutil.copy(HERE / "meson/meson.build", folder)
    shutil.copytree(programs(), folder / "programs")
    said = log.run("meson", "test", "-C", folder / "build")
    # It takes each part, but no shared object.
    expected = {*consumer_tests(CONSUMER)} - {"plugin"}
    passed = set(re.findall(r"^ *\d+/\d+ (?:.*[ :])?(\w+) +OK\s", said, re.MULTILINE))
    if passed != expected:
        raise Failed(f"not {' '.join(sorted(expected))} passed, but {' '.join(sorted(passed))}")


NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def port_faults(port, portfile):
    """What vcpkg would refuse in a vcpkg.json, as far as the keys go that one of weft has."""
    known = {"name", "version", "description", "license", "supports", "dependencies",
             "default-features", "features"}
    features = port.get("features", {})
    faults = [f"unknown key {key}" for key in port.keys() - known]
    faults += [f"no {key}" for key in known - port.keys()]
    if port.get("version") != VERSION:
        faults.append(f"the version is not {VERSION}")
    dependencies = list(port.get("dependencies", []))
    for name, feature in features.items():
        if feature.keys() != {"description", "dependencies"}:
            faults.append(f"feature {name} has not a description and dependencies")
        dependencies += feature.get("dependencies", [])
    names = [port.get("name", ""), *features]
    for one in dependencies:
        names.append(one if isinstance(one, str) else one.get("name", ""))
        if isinstance(one, dict) and one.keys() - {"name", "host", "features", "platform"}:
            faults.append(f"unknown key in {one}")
    faults += [f'"{name}" is no name' for name in names if not NAME.fullmatch(name)]
    faults += [f"no feature {name}" for name in port.get("default-features", [])
               if name not in features]
    mapped = set(re.findall(r"^ +(\w+) WEFT_WITH_\w+$", portfile, re.MULTILINE))
    faults += [f"feature {name} is not in both files" for name in mapped ^ features.keys()]
    return faults


@way
def vcpkg(log):
    """The overlay port of vcpkg, by stand-ins of vcpkg's functions: vcpkg itself is not run."""
    port = ROOT / "packaging/vcpkg/weft"
    manifest = json.loads((port / "vcpkg.json").read_text())
    portfile = (port / "portfile.cmake").read_text()
    faults = port_faults(manifest, portfile)
    if faults:
        raise Failed(f"vcpkg.json: {'; '.join(faults)}")
    for wrong in ({"licence": "MIT"}, {"version": "0"}, {"name": "We_ft"}, {"features": {}}):
        if not port_faults({**manifest, **wrong}, portfile):
            raise Failed(f"vcpkg.json may have {wrong}")
    staged = fresh("vcpkg-staged")
    log.run("cmake", "-DPORT=weft", f"-DPORT_DIR={port}", "-DFEATURES=cares;uring",
            f"-DBUILT={fresh('vcpkg-built')}", f"-DTO={staged}", "-DMORE=-DWEFT_UNITY=ON", "-P",
            HERE / "vcpkg/run_port.cmake")
    tree = staged.rename(fresh("vcpkg-installed"))
    if (tree / "lib/pkgconfig/weft-tls.pc").exists():
        raise Failed("a feature is built that is not asked for")
    run_consumer(log, "vcpkg", tree, [part for part in CONSUMER if part not in ("shared", "tls")])


@way
def bazel(log):
    """Bazel 4.2.3 of Debian, which has no modules: by a WORKSPACE, and a stand-in for rules_cc."""
    need("bazel", "bazel-bootstrap")
    for name in ("platforms/BUILD", "../rules/java/BUILD"):
        if not (Path("/usr/share/bazel/tools") / name).exists():
            raise Skipped("bazel-platforms or bazel-rules-java is not installed")
    folder = fresh("bazel")
    shutil.copytree(HERE / "bazel", folder, dirs_exist_ok=True)
    shutil.copytree(programs(), folder / "programs")
    (copied(log, folder / "weft") / "WORKSPACE").touch()
    command = ["bazel", "--batch", f"--output_user_root={MADE}/bazel-out", "build",
               "--dynamic_mode=off", "--define=weft_uring=on", "--define=weft_cares=on"]
    # Nothing keeps what was compiled, and all of weft takes long: most of it is loaded alone.
    log.run(*command, "--nobuild", "//:all", "@weft//:all", at=folder)
    log.run(*command, "//:coroutine", "//:fast_kill", at=folder)
    for name in ("coroutine", "fast_kill"):
        log.run(folder / "bazel-bin" / name)
