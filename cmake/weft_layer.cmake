# weft_layer(<name> <deps>...): the folder weft/<name> becomes the target weft::<name>.
#
# A layer with sources is a static library, one without is an interface; its headers are a file set,
# whose base, the root of the repository, is all that its users see. A layer is a flat folder: what
# lies deeper is an opt-in or an optional part of it (weft_opt_in, weft_optional).

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
        # Indirect branches land on endbr64, and no object claims shadow stacks, which the switch does
        # not switch: the linker then claims them for no program with weft in it.
        if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
            target_compile_options(${target} PRIVATE -fcf-protection=branch)
        endif()
    endif()
endfunction()

function(weft_layer name)
    set(folder "${PROJECT_SOURCE_DIR}/weft/${name}")
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.hpp")
    set(scope PUBLIC)
    set(kind STATIC)
    if(NOT sources)
        set(scope INTERFACE)
        set(kind INTERFACE)
    endif()

    add_library(weft_${name} ${kind} ${sources})
    add_library(weft::${name} ALIAS weft_${name})
    set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name}
        UNITY_BUILD ${WEFT_UNITY} UNITY_BUILD_BATCH_SIZE 0)
    weft_furnish(weft_${name} ${scope} "${headers}" ${ARGN})
    if(name STREQUAL "base")
        string(COMPARE EQUAL "${WEFT_BACKEND}" ucontext ucontext)
        target_compile_definitions(weft_base ${scope} WEFT_BACKEND_UCONTEXT=${ucontext})
    endif()
    target_link_libraries(weft INTERFACE weft::${name})

    # What lies under it, all the way down; test/detach builds it with that alone.
    set(under ${ARGN})
    foreach(dep IN LISTS ARGN)
        get_property(deeper GLOBAL PROPERTY WEFT_UNDER_${dep})
        list(APPEND under ${deeper})
    endforeach()
    list(REMOVE_DUPLICATES under)
    set_property(GLOBAL PROPERTY WEFT_UNDER_${name} ${under})
    set_property(GLOBAL APPEND PROPERTY WEFT_LAYERS ${name})
endfunction()

# weft_opt_in(<name> <layer>): the folder weft/<layer>/<name> becomes weft::<name>, an object
# library, so that who links it gets every symbol of it, referenced or not. No folder, no target.
function(weft_opt_in name layer)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}/*.cpp")
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}/*.hpp")
    if(NOT sources)
        return()
    endif()
    add_library(weft_${name} OBJECT ${sources})
    add_library(weft::${name} ALIAS weft_${name})
    set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name} WEFT_LAYER ${layer})
    weft_furnish(weft_${name} PUBLIC "${headers}" ${layer})
    set_property(GLOBAL APPEND PROPERTY WEFT_OPT_INS ${name})
endfunction()

# weft_optional(<name> <layer> <package> <version> <target> <debian>): the folder weft/<layer>/<name>
# becomes weft::<name>, over a library that need not be there; where it is not it is left out, aloud.
function(weft_optional name layer package version target debian)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}/*.cpp")
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/weft/${layer}/${name}/*.hpp")
    if(NOT sources)
        return()
    endif()
    set_property(GLOBAL APPEND PROPERTY WEFT_OPTIONALS ${name})
    find_package(${package} ${version} QUIET)
    if(NOT TARGET ${target})
        message(NOTICE "weft: ${package} ${version} (${debian}) is not installed: no weft::${name}")
        return()
    endif()
    add_library(weft_${name} STATIC ${sources})
    add_library(weft::${name} ALIAS weft_${name})
    set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name} WEFT_LAYER ${layer})
    weft_furnish(weft_${name} PUBLIC "${headers}" ${layer})
    target_link_libraries(weft_${name} PUBLIC ${target})
endfunction()

# weft_uses(<layer> <macro> <header> <library> <debian> <without>): the layer uses a library if it is
# there, and says what there is not if it is not. Its sources see <macro> as 1 or 0.
function(weft_uses name macro header library debian without)
    get_target_property(kind weft_${name} TYPE)
    if(kind STREQUAL "INTERFACE_LIBRARY")
        return()  # its folder is not here
    endif()
    find_path(${macro}_INCLUDE ${header})
    find_library(${macro}_LIBRARY ${library})
    mark_as_advanced(${macro}_INCLUDE ${macro}_LIBRARY)
    set(found 0)
    if(${macro}_INCLUDE AND ${macro}_LIBRARY)
        set(found 1)
        target_include_directories(weft_${name} SYSTEM PRIVATE "${${macro}_INCLUDE}")
        target_link_libraries(weft_${name} PRIVATE "${${macro}_LIBRARY}")
    else()
        message(NOTICE "weft: ${debian} is not installed: ${without}")
    endif()
    target_compile_definitions(weft_${name} PRIVATE ${macro}=${found})
endfunction()
