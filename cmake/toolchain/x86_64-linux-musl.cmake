# Clang with musl and libc++, all static, as the package ziglang of PyPI has them: its `zig` is found
# on the path, or named by WEFT_ZIG. What it makes runs on this machine.
#
#   cmake -B build/port/musl --toolchain cmake/toolchain/x86_64-linux-musl.cmake

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
find_program(WEFT_ZIG zig REQUIRED)
set(CMAKE_C_COMPILER ${WEFT_ZIG} cc -target x86_64-linux-musl)
set(CMAKE_CXX_COMPILER ${WEFT_ZIG} c++ -target x86_64-linux-musl)
# The lengths of musl's messages have other types than glibc's, also within its macros.
set(CMAKE_CXX_FLAGS_INIT
    "-fasynchronous-unwind-tables -Wno-error=sign-compare -Wno-error=sign-conversion -Wno-error=shorten-64-to-32")
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/bin/env)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WEFT_ZIG)

# Programs are this machine's, and there is nothing else but what comes with the compiler.
set(CMAKE_FIND_ROOT_PATH /nonexistent)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(what IN ITEMS LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${what} ONLY)
endforeach()
