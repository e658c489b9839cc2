set(weft_triple aarch64-linux-gnu)
set(weft_processor aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake")
