# weft::shared, where WEFT_SHARED is on: libweft.so, which is all of weft::weft, of the very objects that
# the archives have. A program has either this or archives: one that links both is refused by CMake,
# since it would have two of what there is one of in a thread.
#
# Until 1.0 a minor version may change a layout, so it is part of the soname, and each exported name
# carries it.

get_target_property(weft_in_shared weft INTERFACE_LINK_LIBRARIES)
list(TRANSFORM weft_in_shared REPLACE "^weft::" "")
set(weft_shared_version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(weft_exports "${CMAKE_CURRENT_BINARY_DIR}/packaging/weft.map")
configure_file("${PROJECT_SOURCE_DIR}/packaging/weft.map.in" "${weft_exports}" @ONLY)

add_library(weft_shared SHARED)
add_library(weft::shared ALIAS weft_shared)
weft_own(weft_shared)
set_target_properties(weft_shared PROPERTIES OUTPUT_NAME weft EXPORT_NAME shared LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${weft_shared_version} LINK_DEPENDS "${weft_exports}")
target_compile_features(weft_shared PUBLIC cxx_std_20)
target_compile_options(weft_shared INTERFACE ${weft_sanitize})
target_link_options(weft_shared INTERFACE ${weft_sanitize}
    PRIVATE "LINKER:--version-script=${weft_exports}")
target_sources(weft_shared PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
    FILES weft/weft.hpp weft/version.hpp)
foreach(part IN LISTS weft_in_shared)
    get_target_property(kind weft_${part} TYPE)
    get_target_property(headers weft_${part} HEADER_SET)
    target_sources(weft_shared PUBLIC FILE_SET HEADERS FILES ${headers})
    if(NOT kind STREQUAL "INTERFACE_LIBRARY")
        target_sources(weft_shared PRIVATE $<TARGET_OBJECTS:weft_${part}>)
    endif()
    get_property(used GLOBAL PROPERTY WEFT_USED_BY_${part})
    foreach(one IN LISTS used)
        string(REGEX REPLACE " .*" "" library "${one}")
        target_link_libraries(weft_shared PRIVATE $<BUILD_INTERFACE:weft::${library}>)
    endforeach()
endforeach()
get_target_property(weft_definitions weft_base INTERFACE_COMPILE_DEFINITIONS)
target_compile_definitions(weft_shared INTERFACE ${weft_definitions})
foreach(is_shared IN ITEMS base shared)
    string(COMPARE EQUAL ${is_shared} shared value)
    set_target_properties(weft_${is_shared} PROPERTIES INTERFACE_WEFT_SHARED ${value}
        COMPATIBLE_INTERFACE_BOOL WEFT_SHARED)
endforeach()
weft_stands_on(shared)
