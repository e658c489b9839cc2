"""Conan 2: `conan create packaging/conan`. What weft is built with comes from the system."""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt

# What each option needs of Debian.
LIBRARIES = {"uring": "liburing-dev", "cares": "libc-ares-dev", "tls": "libssl-dev"}


class Weft(ConanFile):
    name = "weft"
    description = "Coroutines for people who write servers"
    license = "MIT"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {f"with_{library}": [True, False] for library in LIBRARIES}
    default_options = {option: True for option in options}

    def set_version(self):
        numbers = load(self, os.path.join(self.recipe_folder, "../../weft/version.hpp"))
        self.version = ".".join(re.findall(r"_(?:MAJOR|MINOR|PATCH) (\d+)", numbers))

    def export_sources(self):
        for what in ("CMakeLists.txt", "LICENSE", "cmake/*", "packaging/*", "weft/*"):
            copy(self, what, os.path.join(self.recipe_folder, "../.."), self.export_sources_folder,
                 excludes=("packaging/conan/*", "packaging/vcpkg/*"))

    def layout(self):
        cmake_layout(self)

    def system_requirements(self):
        Apt(self).install([package for library, package in LIBRARIES.items()
                           if self.options.get_safe(f"with_{library}")])

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCH"):
            toolchain.cache_variables[f"WEFT_{part}"] = "OFF"
        for library in LIBRARIES:
            chosen = self.options.get_safe(f"with_{library}")
            toolchain.cache_variables[f"WEFT_WITH_{library.upper()}"] = "ON" if chosen else "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # weft's own files tell CMake of its parts.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/weft"]
