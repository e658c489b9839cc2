"""Ways to take weft by package managers, and by builds other than CMake's."""

import re
import shutil

from way import (HERE, MADE, ROOT, Failed, build, copied, documented, fresh, from_pypi, need, programs,
                 run_tests, way)



def application(name, **files):
    """A folder with one program, main.cpp, and these files."""
    folder = fresh(name)
    shutil.copy(programs() / "echo.cpp", folder / "main.cpp")
    for path, text in files.items():
        (folder / path).write_text(text)
    return folder


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
    if not re.search(r"^Ok: +7\s", said, re.MULTILINE):
        raise Failed(f"not 7 tests passed, but: {said.splitlines()[-9:]}")
