set(weft_triple arm-linux-gnueabihf)
set(weft_processor armv7l)
set(weft_emulator arm)
include("${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake")
