set(weft_triple i686-linux-gnu)
set(weft_processor i686)
# A kernel of x86-64 runs its programs itself.
set(weft_emulator none)
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-Wl,--dynamic-linker=/usr/i686-linux-gnu/lib/ld-linux.so.2,-rpath=/usr/i686-linux-gnu/lib")
include("${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake")
