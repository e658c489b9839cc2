set(weft_triple s390x-linux-gnu)
set(weft_processor s390x)
include("${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake")
