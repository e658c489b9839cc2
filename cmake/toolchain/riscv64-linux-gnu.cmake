set(weft_triple riscv64-linux-gnu)
set(weft_processor riscv64)
include("${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake")
