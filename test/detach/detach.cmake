# Run by CTest: copies the folders of `layer` and of the layers `under` it into a fresh `folder`, and
# builds test/detach/CMakeLists.txt there.

file(REMOVE_RECURSE "${folder}")
file(COPY "${root}/CMakeLists.txt" "${root}/cmake" DESTINATION "${folder}/weft")
file(COPY "${root}/test/detach/CMakeLists.txt" DESTINATION "${folder}")
foreach(name IN LISTS layer under)
    if(EXISTS "${root}/weft/${name}")
        file(COPY "${root}/weft/${name}" DESTINATION "${folder}/weft/weft")
    endif()
endforeach()

file(GLOB headers RELATIVE "${folder}/weft" "${folder}/weft/weft/${layer}/*.hpp")
set(text "")
foreach(header IN LISTS headers)
    string(APPEND text "#include \"${header}\"\n")
endforeach()
file(WRITE "${folder}/main.cpp" "${text}int main() {}\n")

execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S "${folder}" -B "${folder}/build"
    -D CMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_COMPILER=${compiler}"
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}" "-DWEFT_BACKEND=${backend}" "-Dlayer=${layer}"
    "-Dunder=${under}" --log-level=ERROR COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
execute_process(COMMAND ${CMAKE_COMMAND} --build "${folder}/build" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${folder}/build/detached" COMMAND_ERROR_IS_FATAL ANY)
