# weft_layer(<name> <deps>...): the folder weft/<name> becomes the target weft::<name>.
#
# A layer with sources is a static library, one without is an interface; its headers are a file set,
# whose base, the root of the repository, is all that its users see. What its users include lies
# flat in its folder, what they do not in detail/; another folder is an opt-in or an optional part of
# it (weft_opt_in, weft_optional).

add_library(weft INTERFACE)
add_library(weft::weft ALIAS weft)

# Everything common to layers and opt-in parts: headers, language, dependencies, flags.
function(weft_furnish target scope headers)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
        FILES ${headers})
    target_compile_features(${target} ${scope} cxx_std_20)
    target_compile_options(${target} ${scope} ${weft_sanitize})
    target_link_options(${target} ${scope} ${weft_sanitize})
    foreach(dep IN LISTS ARGN)
        target_link_libraries(${target} ${scope} weft::${dep})
    endforeach()
    if(scope STREQUAL "PUBLIC")
        weft_own(${target})
        weft_place_anywhere(${target})
        # Indirect branches land on endbr64 (on aarch64 on bti), and no object claims shadow stacks, which
        # the switch does not switch: the linker then claims them for no program with weft in it.
        if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
            target_compile_options(${target} PRIVATE -fcf-protection=branch)
        elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
            target_compile_options(${target} PRIVATE -mbranch-protection=standard)
        endif()
    endif()
endfunction()

# weft_stands_on(<name> <parts>...): notes a part, and WEFT_UNDER_<name>: what lies under it, all the
# way down. test/detach builds a layer with that alone, and an installed part asks for it.
function(weft_stands_on name)
    set(under ${ARGN})
    foreach(part IN LISTS ARGN)
        get_property(deeper GLOBAL PROPERTY WEFT_UNDER_${part})
        list(APPEND under ${deeper})
    endforeach()
    list(REMOVE_DUPLICATES under)
    set_property(GLOBAL PROPERTY WEFT_UNDER_${name} ${under})
    set_property(GLOBAL APPEND PROPERTY WEFT_PARTS ${name})
endfunction()

# weft_apart(<name>): the layer of that name, which follows, is not in weft::weft. It changes a
# program by being linked, and so is an object library: what links it gets every symbol of it.
function(weft_apart name)
    set_property(GLOBAL APPEND PROPERTY WEFT_APART ${name})
endfunction()

# weft_of_system(<variable>): of the sources in it, those that are for Windows or for the others:
# <name>_windows.cpp stands there in the place of <name>.cpp, and is empty elsewhere; what has none is
# left out by WEFT_NOT_ON_WINDOWS, a list of the ends of paths. The headers of Windows have macros with
# names that are in use elsewhere, so these files are not in one unit with others.
function(weft_of_system variable)
    set(sources ${${variable}})
    if(WIN32)
        get_property(without GLOBAL PROPERTY WEFT_NOT_ON_WINDOWS)
        set(own ${sources})
        list(FILTER own INCLUDE REGEX "_windows(_test)?[.]cpp$")
        set_source_files_properties(${own} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
        list(TRANSFORM own REPLACE "_windows((_test)?[.]cpp)$" "\\1" OUTPUT_VARIABLE replaced)
        foreach(end IN LISTS without)
            list(FILTER sources EXCLUDE REGEX "/${end}$")
        endforeach()
        list(REMOVE_ITEM sources ${replaced} "")
    endif()
    set(${variable} ${sources} PARENT_SCOPE)
endfunction()

function(weft_layer name)
    set(folder "${PROJECT_SOURCE_DIR}/weft/${name}")
    get_property(without GLOBAL PROPERTY WEFT_NOT_ON_WINDOWS)
    if(WIN32 AND name IN_LIST without)
        message(NOTICE "weft: the layer ${name} is not written for Windows")
        return()
    endif()
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    weft_of_system(sources)
    file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.hpp" "${folder}/*.h" "${folder}/detail/*.hpp")
    set(scope PUBLIC)
    set(kind STATIC)
    if(NOT sources)
        set(scope INTERFACE)
        set(kind INTERFACE)
    endif()
    get_property(apart GLOBAL PROPERTY WEFT_APART)
    if(name IN_LIST apart AND sources)
        set(kind OBJECT)
    endif()

    add_library(weft_${name} ${kind} ${sources})
    add_library(weft::${name} ALIAS weft_${name})
    set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name}
        UNITY_BUILD ${WEFT_UNITY} UNITY_BUILD_BATCH_SIZE 0)
    weft_furnish(weft_${name} ${scope} "${headers}" ${ARGN})
    if(name STREQUAL "base")
        string(COMPARE EQUAL "${WEFT_BACKEND}" ucontext ucontext)
        target_compile_definitions(weft_base ${scope} WEFT_BACKEND_UCONTEXT=${ucontext})
        # GCC before 13 calls a library for atomics of one byte there.
        if(CMAKE_SYSTEM_PROCESSOR STREQUAL "riscv64" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
            target_link_libraries(weft_base ${scope} atomic)
        endif()
        if(WIN32)
            target_link_libraries(weft_base ${scope} synchronization)
        endif()
    endif()
    if(NOT name IN_LIST apart)
        target_link_libraries(weft INTERFACE weft::${name})
    endif()

    weft_stands_on(${name} ${ARGN})
    set_property(GLOBAL APPEND PROPERTY WEFT_LAYERS ${name})
endfunction()

# weft_opt_in(<name> <layer>): the folder weft/<layer>/<name> becomes weft::<name>, an object
# library, so that what links it gets every symbol of it, referenced or not. No folder, no target.
function(weft_opt_in name layer)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}/*.cpp")
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}/*.hpp")
    weft_of_system(sources)
    if(NOT sources OR NOT TARGET weft_${layer})
        return()
    endif()
    add_library(weft_${name} OBJECT ${sources})
    add_library(weft::${name} ALIAS weft_${name})
    set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name} WEFT_LAYER ${layer})
    weft_furnish(weft_${name} PUBLIC "${headers}" ${layer})
    weft_stands_on(${name} ${layer})
    set_property(GLOBAL APPEND PROPERTY WEFT_OPT_INS ${name})
endfunction()

# weft_preload(<layer>): libweft_<layer>.so, of the layer, what lies under it and weft/<layer>/preload,
# compiled once more as a shared object must be. Not under a sanitizer, which is to be loaded first.
function(weft_preload layer)
    file(GLOB own CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${layer}/preload/*.cpp")
    if(NOT own OR NOT TARGET weft_${layer} OR NOT WEFT_SANITIZE STREQUAL "none"
            OR CMAKE_CXX_FLAGS MATCHES "-fno-exceptions")
        return()
    endif()
    set(target weft_${layer}_preload)
    add_library(${target} SHARED ${own})
    weft_own(${target})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME weft_${layer}
        UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    get_property(under GLOBAL PROPERTY WEFT_UNDER_${layer})
    foreach(name IN LISTS layer under)
        get_target_property(kind weft_${name} TYPE)
        if(NOT kind STREQUAL "INTERFACE_LIBRARY")
            file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${name}/*.cpp")
            target_sources(${target} PRIVATE ${sources})
            set_source_files_properties(${sources} PROPERTIES UNITY_GROUP ${name})
            target_compile_definitions(${target} PRIVATE
                $<TARGET_PROPERTY:weft_${name},COMPILE_DEFINITIONS>)
        endif()
    endforeach()
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    # A function that the program has inlined differently is not to stand in for ours.
    target_compile_options(${target} PRIVATE -fvisibility-inlines-hidden)
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        target_compile_options(${target} PRIVATE -fcf-protection=branch)
    elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
        target_compile_options(${target} PRIVATE -mbranch-protection=standard)
    endif()
    foreach(used IN ITEMS uring kqueue cares)
        if(TARGET weft::${used})
            target_link_libraries(${target} PRIVATE weft::${used})
        endif()
    endforeach()
endfunction()

# weft_missing(<option> <what> <debian> <without>): a library that the option asks for, or that it would
# use, is not there.
function(weft_missing option what debian without)
    if(${option} STREQUAL "ON")
        message(FATAL_ERROR "${option} is ON, but ${what} is not installed (Debian: ${debian})")
    endif()
    message(NOTICE "weft: ${what} (${debian}) is not installed: ${without}")
endfunction()

# weft_optional(<name> <layer> <package> <version> <target> <debian>): the folder weft/<layer>/<name>
# becomes weft::<name>, over a library that need not be there; where it is not it is left out, aloud,
# and where WEFT_WITH_<NAME> is OFF in silence.
function(weft_optional name layer package version target debian)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}/*.cpp")
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}/*.hpp"
        "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}/detail/*.hpp")
    if(NOT sources OR NOT TARGET weft_${layer})
        return()
    endif()
    set_property(GLOBAL APPEND PROPERTY WEFT_OPTIONALS ${name})
    string(TOUPPER "WEFT_WITH_${name}" option)
    if(${option} STREQUAL "OFF")
        return()
    endif()
    find_package(${package} ${version} QUIET)
    if(NOT TARGET ${target})
        weft_missing(${option} "${package} ${version}" ${debian} "no weft::${name}")
        return()
    endif()
    add_library(weft_${name} STATIC ${sources})
    add_library(weft::${name} ALIAS weft_${name})
    set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name} WEFT_LAYER ${layer})
    weft_furnish(weft_${name} PUBLIC "${headers}" ${layer})
    target_link_libraries(weft_${name} PUBLIC ${target})
    weft_stands_on(${name} ${layer})
    set_property(GLOBAL PROPERTY WEFT_NEEDS_${name} "${package} ${version}" "${debian}")
endfunction()

# weft_drop_in(<name> <layer> <deps>...): the folder weft/<layer>/<name> becomes weft::<name>, whose
# users see its *.h, by their bare names, and nothing else of weft: no header, no language.
function(weft_drop_in name layer)
    set(folder "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}")
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.h")
    if(NOT sources OR NOT TARGET weft_${layer})
        return()
    endif()
    add_library(weft_${name} STATIC ${sources})
    add_library(weft::${name} ALIAS weft_${name})
    set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name} WEFT_LAYER ${layer}
        UNITY_BUILD ${WEFT_UNITY} UNITY_BUILD_BATCH_SIZE 0)
    target_sources(weft_${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${folder}" FILES ${headers})
    target_link_libraries(weft_${name} PRIVATE weft::${layer} ${CMAKE_DL_LIBS})
    foreach(dep IN LISTS ARGN)
        if(NOT TARGET weft_${dep})
            continue()  # its folder is not here
        endif()
        get_target_property(kind weft_${dep} TYPE)
        if(kind STREQUAL "OBJECT_LIBRARY")  # what links the drop-in gets all of it
            target_sources(weft_${name} INTERFACE
                $<BUILD_INTERFACE:$<TARGET_OBJECTS:weft_${dep}>>)
            target_link_libraries(weft_${name} INTERFACE $<INSTALL_INTERFACE:weft_${dep}_whole>)
        else()
            target_link_libraries(weft_${name} PRIVATE weft::${dep})
        endif()
    endforeach()
    weft_own(weft_${name})
    weft_place_anywhere(weft_${name})
    weft_stands_on(${name} ${layer} ${ARGN})
    set_property(GLOBAL APPEND PROPERTY WEFT_OPTIONALS ${name})
endfunction()

# weft_uses(<layer> <macro> <header> <library> <debian> <without>): the layer uses a library if it is
# there and WEFT_WITH_<LIBRARY> is not OFF, and says what there is not if it is not. Its sources see
# <macro> as 1 or 0. <debian> is "none" where Debian has no package of it.
function(weft_uses name macro header library debian without)
    if(NOT TARGET weft_${name})
        return()  # it is not for this system
    endif()
    get_target_property(kind weft_${name} TYPE)
    if(kind STREQUAL "INTERFACE_LIBRARY")
        return()  # its folder is not here
    endif()
    string(TOUPPER "WEFT_WITH_${library}" option)
    if(${option} STREQUAL "OFF")
        target_compile_definitions(weft_${name} PRIVATE ${macro}=0)
        return()
    endif()
    find_path(${macro}_INCLUDE ${header})
    find_library(${macro}_LIBRARY ${library})
    mark_as_advanced(${macro}_INCLUDE ${macro}_LIBRARY)
    set(found 0)
    if(${macro}_INCLUDE AND ${macro}_LIBRARY)
        set(found 1)
        # Linked by the name of a target, which an installed weft finds again.
        add_library(weft::${library} UNKNOWN IMPORTED GLOBAL)
        set_target_properties(weft::${library} PROPERTIES
            IMPORTED_LOCATION "${${macro}_LIBRARY}"
            INTERFACE_INCLUDE_DIRECTORIES "${${macro}_INCLUDE}")
        target_link_libraries(weft_${name} PRIVATE weft::${library})
        set_property(GLOBAL APPEND PROPERTY WEFT_USED_BY_${name} "${library} ${debian}")
    else()
        weft_missing(${option} "lib${library}" ${debian} "${without}")
    endif()
    target_compile_definitions(weft_${name} PRIVATE ${macro}=${found})
endfunction()
