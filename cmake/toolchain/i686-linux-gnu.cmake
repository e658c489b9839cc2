set(weft_triple i686-linux-gnu)
set(weft_processor i686)
set(weft_emulator i386)
include("${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake")
