# Runs a portfile without vcpkg, as far as a release build goes:
#
#   cmake -DPORT=<name> -DPORT_DIR=<its files> -DFEATURES=<list> -DBUILT=<a folder> -DTO=<a folder>
#       [-DMORE=<options of CMake>] -P run_port.cmake
#
# Each function that a port may call is a stand-in, which does what vcpkg's documentation says, and
# refuses an argument that it does not know.
cmake_minimum_required(VERSION 3.25)

set(VCPKG_BUILD_TYPE release)
set(VCPKG_TARGET_IS_LINUX ON)
set(VCPKG_LIBRARY_LINKAGE static)
set(CURRENT_PACKAGES_DIR "${TO}")
set(CURRENT_BUILDTREES_DIR "${BUILT}")

function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Ends a function that is given an argument that it does not know.
macro(no_more_arguments)
    if(given_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION} is given ${given_UNPARSED_ARGUMENTS}")
    endif()
endmacro()

# An option for each feature, by whether it is asked for.
function(vcpkg_check_features)
    cmake_parse_arguments(PARSE_ARGV 0 given "" OUT_FEATURE_OPTIONS FEATURES)
    no_more_arguments()
    set(options "")
    while(given_FEATURES)
        list(POP_FRONT given_FEATURES feature option)
        if(feature IN_LIST FEATURES)
            list(APPEND options "-D${option}=ON")
        else()
            list(APPEND options "-D${option}=OFF")
        endif()
    endwhile()
    set(${given_OUT_FEATURE_OPTIONS} "${options}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 given "" SOURCE_PATH OPTIONS)
    no_more_arguments()
    run("${CMAKE_COMMAND}" -S "${given_SOURCE_PATH}" -B "${BUILT}" -G Ninja -DCMAKE_BUILD_TYPE=Release
        -DBUILD_SHARED_LIBS=OFF "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${given_OPTIONS} ${MORE})
endfunction()

function(vcpkg_cmake_install)
    run("${CMAKE_COMMAND}" --build "${BUILT}" --target install)
endfunction()

# The files for CMake move from CONFIG_PATH to share/<port>, and what they say of the prefix with them.
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(PARSE_ARGV 0 given "" "PACKAGE_NAME;CONFIG_PATH" "")
    no_more_arguments()
    if(NOT given_PACKAGE_NAME)
        set(given_PACKAGE_NAME "${PORT}")
    endif()
    set(share "${CURRENT_PACKAGES_DIR}/share/${given_PACKAGE_NAME}")
    file(MAKE_DIRECTORY "${share}")
    file(GLOB files RELATIVE "${CURRENT_PACKAGES_DIR}/${given_CONFIG_PATH}"
        "${CURRENT_PACKAGES_DIR}/${given_CONFIG_PATH}/*")
    foreach(file IN LISTS files)
        file(RENAME "${CURRENT_PACKAGES_DIR}/${given_CONFIG_PATH}/${file}" "${share}/${file}")
    endforeach()
    # As vcpkg does it, the folder above goes where nothing is left in it.
    cmake_path(GET given_CONFIG_PATH PARENT_PATH above)
    file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/${given_CONFIG_PATH}")
    file(GLOB files "${CURRENT_PACKAGES_DIR}/${above}/*")
    if(NOT files)
        file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/${above}")
    endif()
    file(GLOB files "${share}/*.cmake")
    foreach(file IN LISTS files)
        file(READ "${file}" text)
        string(REPLACE [["${CMAKE_CURRENT_LIST_DIR}/../../../" ABSOLUTE]]
            [["${CMAKE_CURRENT_LIST_DIR}/../../" ABSOLUTE]] text "${text}")
        string(REGEX REPLACE "(\nget_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\))+"
            "\nget_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_DIR}/../..\" ABSOLUTE)"
            text "${text}")
        file(WRITE "${file}" "${text}")
    endforeach()
endfunction()

# Those of weft begin from where they lie.
function(vcpkg_fixup_pkgconfig)
    file(GLOB files "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/*.pc")
    foreach(file IN LISTS files)
        file(STRINGS "${file}" prefix REGEX "^prefix=")
        if(NOT prefix STREQUAL "prefix=\${pcfiledir}/../..")
            message(FATAL_ERROR "${file} has ${prefix}")
        endif()
    endforeach()
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 given "" "" FILE_LIST)
    no_more_arguments()
    file(COPY_FILE "${given_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
endfunction()

include("${PORT_DIR}/portfile.cmake")
foreach(file IN ITEMS "share/${PORT}/copyright" "share/${PORT}/usage" "share/${PORT}/${PORT}-config.cmake")
    if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${file}")
        message(FATAL_ERROR "the port installs no ${file}")
    endif()
endforeach()
if(EXISTS "${CURRENT_PACKAGES_DIR}/lib/cmake" OR EXISTS "${CURRENT_PACKAGES_DIR}/debug/include")
    message(FATAL_ERROR "the port leaves what vcpkg refuses: lib/cmake or debug/include")
endif()
