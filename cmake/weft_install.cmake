# What `cmake --install` installs. Each part (a layer, an opt-in, an optional part, a drop-in) is a
# component of its name: its headers, its archive, and the file that tells CMake of both. The component
# `weft` is what is common to all.
#
#   include/weft/...                         the headers, as they lie in the repository
#   lib/libweft_<part>.a                     its archive
#   lib/libweft.so                           all of weft::weft, with WEFT_SHARED
#   lib/weft/libweft_hook.so                 what is loaded before a program
#   lib/cmake/weft/weft-config.cmake         find_package(weft COMPONENTS io hook)
#   lib/cmake/weft/weft-<part>-targets.cmake what the file above includes
#   lib/pkgconfig/weft*.pc                   the same for other builds
#   share/weft/weft.cppm                     the module, with WEFT_MODULE; its users compile it

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(weft_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weft")
set(weft_packaging "${PROJECT_SOURCE_DIR}/packaging")
set(weft_made "${CMAKE_CURRENT_BINARY_DIR}/packaging")

# weft_install_targets(<part> <headers below> <targets>...): the targets, and what tells of them.
function(weft_install_targets part below)
    install(TARGETS ${ARGN} EXPORT weft-${part}
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${part}
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${part}
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${below}" COMPONENT ${part})
    install(EXPORT weft-${part} FILE weft-${part}-targets.cmake NAMESPACE weft::
        DESTINATION "${weft_package_dir}" COMPONENT ${part})
endfunction()

# weft_install_part(<part>): an object library becomes an archive that is linked whole, as objects
# that lie in a folder of the configuration's name are of use to CMake alone.
function(weft_install_part part)
    set(target weft_${part})
    get_target_property(kind ${target} TYPE)
    get_target_property(modules ${target} CXX_MODULE_SETS)
    if(modules)
        install(TARGETS ${target} EXPORT weft-${part}
            ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${part}
            FILE_SET CXX_MODULES DESTINATION "${CMAKE_INSTALL_DATADIR}/weft" COMPONENT ${part})
        install(EXPORT weft-${part} FILE weft-${part}-targets.cmake NAMESPACE weft::
            DESTINATION "${weft_package_dir}" CXX_MODULES_DIRECTORY modules COMPONENT ${part})
        return()
    endif()
    if(NOT kind STREQUAL "OBJECT_LIBRARY")
        # The headers of a drop-in are included by their bare names.
        get_target_property(base ${target} HEADER_DIRS)
        file(RELATIVE_PATH below "${PROJECT_SOURCE_DIR}" "${base}")
        weft_install_targets(${part} "${below}" ${target})
        return()
    endif()
    add_library(${target}_archive STATIC $<TARGET_OBJECTS:${target}>)
    set_target_properties(${target}_archive PROPERTIES OUTPUT_NAME ${target} LINKER_LANGUAGE CXX
        EXPORT_NAME ${part}_archive)
    add_library(weft::${part}_archive ALIAS ${target}_archive)
    add_library(${target}_whole INTERFACE)
    set_target_properties(${target}_whole PROPERTIES EXPORT_NAME ${part})
    get_target_property(headers ${target} HEADER_SET)
    target_sources(${target}_whole INTERFACE FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
        FILES ${headers})
    # What the archive needs is known of the archive, so that it comes after it also in a program that
    # names it before.
    get_target_property(needs ${target} INTERFACE_LINK_LIBRARIES)
    target_link_libraries(${target}_archive PUBLIC ${needs})
    target_link_libraries(${target}_whole INTERFACE
        "$<LINK_LIBRARY:WHOLE_ARCHIVE,weft::${part}_archive>" ${needs})
    weft_install_targets(${part} "" ${target}_whole ${target}_archive)
endfunction()

target_sources(weft INTERFACE FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
    FILES weft/weft.hpp weft/version.hpp)
weft_install_targets(weft "" weft)

# What lies under what, for weft-config.cmake; and the archives for pkg-config, the topmost first.
get_property(weft_parts GLOBAL PROPERTY WEFT_PARTS)
set(weft_graph "")
set(weft_archives "")
foreach(part IN LISTS weft_parts)
    weft_install_part(${part})
    foreach(fact IN ITEMS UNDER USED_BY NEEDS)
        get_property(value GLOBAL PROPERTY WEFT_${fact}_${part})
        if(value)
            string(APPEND weft_graph "set(weft_${fact}_${part} \"${value}\")\n")
        endif()
    endforeach()
endforeach()
get_target_property(weft_parts_of_weft weft INTERFACE_LINK_LIBRARIES)
list(TRANSFORM weft_parts_of_weft REPLACE "^weft::" "")

configure_package_config_file("${weft_packaging}/weft-config.cmake.in" "${weft_made}/weft-config.cmake"
    INSTALL_DESTINATION "${weft_package_dir}" NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Below 1.0 a minor version may break.
write_basic_package_version_file("${weft_made}/weft-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${weft_made}/weft-config.cmake" "${weft_made}/weft-config-version.cmake"
    DESTINATION "${weft_package_dir}" COMPONENT weft)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT weft)
if(TARGET weft_hook_preload)
    install(TARGETS weft_hook_preload
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/weft" COMPONENT hook)
endif()

# pkg-config: weft is all of weft::weft; the others require it. An archive that is linked whole stands
# between two words to the linker. weft_hook.so is none of theirs.
foreach(part IN LISTS weft_parts_of_weft)
    get_target_property(kind weft_${part} TYPE)
    if(NOT kind STREQUAL "INTERFACE_LIBRARY")
        string(PREPEND weft_archives " -lweft_${part}")
    endif()
    get_property(used GLOBAL PROPERTY WEFT_USED_BY_${part})
    foreach(one IN LISTS used)
        string(REGEX REPLACE " .*" "" library "${one}")
        # A linker looks by itself in the folders of the system alone.
        get_target_property(location weft::${library} IMPORTED_LOCATION)
        get_filename_component(location "${location}" DIRECTORY)
        if(NOT location IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
            string(APPEND weft_archives " -L${location}")
        endif()
        string(APPEND weft_archives " -l${library}")
    endforeach()
endforeach()
get_target_property(weft_definitions weft_base INTERFACE_COMPILE_DEFINITIONS)
list(TRANSFORM weft_definitions PREPEND "-D")
list(JOIN weft_definitions " " weft_definitions)
set(weft_sanitize_flags ${weft_sanitize})
list(TRANSFORM weft_sanitize_flags PREPEND " ")
list(JOIN weft_sanitize_flags "" weft_sanitize_flags)
# From where the file lies, so that a tree may be moved.
file(RELATIVE_PATH weft_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" weft_prefix "\${pcfiledir}/${weft_prefix}")
# What a compiler of C has to be told.
set(weft_cxx_runtime "")
foreach(library IN LISTS CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    if(library MATCHES "^(c[+][+]|stdc[+][+]|m)$")
        string(APPEND weft_cxx_runtime " -l${library}")
    endif()
endforeach()
foreach(package IN ITEMS weft weft-shared weft-hook weft-posix weft-libco weft-tls)
    string(REPLACE "weft-" "" part "${package}")
    if(package STREQUAL "weft" OR TARGET weft_${part})
        configure_file("${weft_packaging}/${package}.pc.in" "${weft_made}/${package}.pc" @ONLY)
        install(FILES "${weft_made}/${package}.pc"
            DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT ${part})
    endif()
endforeach()
