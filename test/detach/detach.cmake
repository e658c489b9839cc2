# Run by CTest: copies the folders of `layer` and of the layers `under` it into a fresh `folder`, and
# builds there test/detach/CMakeLists.txt and each header of the layer alone.

file(REMOVE_RECURSE "${folder}")
file(COPY "${root}/CMakeLists.txt" "${root}/cmake" DESTINATION "${folder}/weft")
file(COPY "${root}/test/detach/CMakeLists.txt" DESTINATION "${folder}")
foreach(name IN LISTS layer under)
    if(EXISTS "${root}/weft/${name}")
        file(COPY "${root}/weft/${name}" DESTINATION "${folder}/weft/weft")
    endif()
endforeach()
file(WRITE "${folder}/main.cpp" "int main() {}\n")

# A compiler cache may give a layer's lower ones what it gave the layer before.
set(ENV{CCACHE_BASEDIR} "${folder}")
set(ENV{CCACHE_NOHASHDIR} 1)

set(targets detached)
file(GLOB headers "${folder}/weft/weft/${layer}/*.hpp")
if(headers)
    list(APPEND targets weft_${layer}_verify_interface_header_sets)
endif()

execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S "${folder}" -B "${folder}/build"
    -D CMAKE_VERIFY_INTERFACE_HEADER_SETS=ON
    "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}"
    "-DWEFT_BACKEND=${backend}" "-Dlayer=${layer}" "-Dunder=${under}" --log-level=ERROR
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
execute_process(COMMAND ${CMAKE_COMMAND} --build "${folder}/build" --target ${targets}
    COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${folder}/build/detached" COMMAND_ERROR_IS_FATAL ANY)
