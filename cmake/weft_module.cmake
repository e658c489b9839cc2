# weft::module, where WEFT_MODULE is on: what links it may `import weft;`. CMake knows from 3.28 on, with
# Ninja, in which order modules are compiled; it asks clang-scan-deps, which comes with Clang's tools.

string(REPLACE "GNU" "GCC" weft_compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
    message(FATAL_ERROR "WEFT_MODULE needs Clang 16 or newer; ${weft_compiler} is not supported")
elseif(CMAKE_VERSION VERSION_LESS 3.28)
    message(FATAL_ERROR "WEFT_MODULE needs CMake 3.28 or newer; this is ${CMAKE_VERSION}")
elseif(NOT CMAKE_GENERATOR MATCHES "Ninja")
    message(FATAL_ERROR "WEFT_MODULE needs the generator Ninja; this is ${CMAKE_GENERATOR}")
elseif(NOT CMAKE_CXX_COMPILER_CLANG_SCAN_DEPS)
    message(FATAL_ERROR "WEFT_MODULE needs clang-scan-deps of ${weft_compiler} (Debian: clang-tools)")
endif()

add_library(weft_module STATIC)
add_library(weft::module ALIAS weft_module)
set_target_properties(weft_module PROPERTIES EXPORT_NAME module CXX_SCAN_FOR_MODULES ON)
target_sources(weft_module PUBLIC FILE_SET CXX_MODULES
    BASE_DIRS "${PROJECT_SOURCE_DIR}/packaging/module"
    FILES "${PROJECT_SOURCE_DIR}/packaging/module/weft.cppm")
weft_own(weft_module)
target_compile_features(weft_module PUBLIC cxx_std_20)
# An importer is refused where it differs from the module in extensions of the language.
set_property(TARGET weft_module PROPERTY CXX_EXTENSIONS ${CMAKE_CXX_EXTENSIONS})
get_target_property(weft_under_module weft INTERFACE_LINK_LIBRARIES)
target_link_libraries(weft_module PUBLIC ${weft_under_module})
list(TRANSFORM weft_under_module REPLACE "^weft::" "")
weft_stands_on(module ${weft_under_module})
