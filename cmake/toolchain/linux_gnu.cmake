# Included by each <triple>.cmake, which sets what this is made of: weft_triple is Debian's cross
# compiler and its libraries, weft_processor both the system's word for the processor and qemu's, or
# weft_emulator where qemu has another, or `none` where this machine needs none.
#
#   cmake -B build/port/aarch64 --toolchain cmake/toolchain/aarch64-linux-gnu.cmake

if(NOT weft_emulator)
    set(weft_emulator ${weft_processor})
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${weft_processor})
set(CMAKE_C_COMPILER ${weft_triple}-gcc)
set(CMAKE_CXX_COMPILER ${weft_triple}-g++)
if(NOT weft_emulator STREQUAL "none")
    set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${weft_emulator} -L /usr/${weft_triple})
endif()

# Programs are this machine's, all else is the port's.
set(CMAKE_FIND_ROOT_PATH /usr/${weft_triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(what IN ITEMS LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${what} ONLY)
endforeach()
