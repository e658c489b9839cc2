set(weft_triple powerpc64le-linux-gnu)
set(weft_processor ppc64le)
include("${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake")
