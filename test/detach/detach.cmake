# Run by CTest: copies the folders of `layer` and of the layers `under` it into a fresh `folder`, and
# builds there test/detach/CMakeLists.txt with a program that includes every header of the layer.
# That each header compiles alone is for tools/tidy.py.

file(REMOVE_RECURSE "${folder}")
file(COPY "${root}/CMakeLists.txt" "${root}/cmake" DESTINATION "${folder}/weft")
file(COPY "${root}/weft/version.hpp" DESTINATION "${folder}/weft/weft")
file(COPY "${root}/test/detach/CMakeLists.txt" DESTINATION "${folder}")
foreach(name IN LISTS layer under)
    if(EXISTS "${root}/weft/${name}")
        file(COPY "${root}/weft/${name}" DESTINATION "${folder}/weft/weft")
    endif()
endforeach()
file(GLOB headers RELATIVE "${folder}/weft" "${folder}/weft/weft/${layer}/*.hpp"
    "${folder}/weft/weft/${layer}/detail/*.hpp")
list(FILTER headers EXCLUDE REGEX "/switch_")  # one for each backend; the others include the right one
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n")
string(JOIN "" includes ${headers})
file(WRITE "${folder}/main.cpp" "${includes}int main() {}\n")

# A compiler cache may give a layer's lower ones what it gave the layer before.
set(ENV{CCACHE_BASEDIR} "${folder}")
set(ENV{CCACHE_NOHASHDIR} 1)

execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S "${folder}" -B "${folder}/build"
    -D WEFT_UNITY=ON "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}"
    "-DWEFT_BACKEND=${backend}" "-Dlayer=${layer}" "-Dunder=${under}" --log-level=ERROR
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
execute_process(COMMAND ${CMAKE_COMMAND} --build "${folder}/build" --target detached
    COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${folder}/build/detached" COMMAND_ERROR_IS_FATAL ANY)
