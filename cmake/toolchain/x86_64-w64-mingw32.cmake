# Windows on x86-64, by Debian's MinGW-w64 (its variant with POSIX threads, which has std::thread) and
# Wine.
#
#   cmake -B build/port/x86_64-windows --toolchain cmake/toolchain/x86_64-w64-mingw32.cmake

set(weft_triple x86_64-w64-mingw32)
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER ${weft_triple}-gcc-posix)
set(CMAKE_CXX_COMPILER ${weft_triple}-g++-posix)
set(CMAKE_RC_COMPILER ${weft_triple}-windres)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)
# The compiler's own libraries are in folders where Wine does not look for them.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)

# Programs are this machine's, all else is the port's.
set(CMAKE_FIND_ROOT_PATH /usr/${weft_triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(what IN ITEMS LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${what} ONLY)
endforeach()
