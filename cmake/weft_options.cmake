# What a user of the build can choose, and the flags of weft's own targets. No flag is global: a
# project that has weft by add_subdirectory keeps its own, except that a sanitizer, which changes the
# inlined switch, is passed on to all that includes weft's headers.

if((CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES
        "^(x86_64|AMD64|aarch64|riscv64|armv7l|i686|s390x|ppc64le)$") OR
        (CMAKE_SYSTEM_NAME STREQUAL "Windows" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$"))
    set(weft_default_backend asm)
else()
    set(weft_default_backend ucontext)
endif()

set(WEFT_BACKEND ${weft_default_backend} CACHE STRING "How a context is switched: asm or ucontext")
set_property(CACHE WEFT_BACKEND PROPERTY STRINGS asm ucontext)
set(WEFT_SANITIZE none CACHE STRING "none, address (with undefined behaviour) or thread")
set_property(CACHE WEFT_SANITIZE PROPERTY STRINGS none address thread)
# AUTO: used where it is there. ON: an error where it is not. OFF: not looked for.
foreach(library URING CARES TLS)
    set(WEFT_WITH_${library} AUTO CACHE STRING
        "Use a library: AUTO (if it is there), ON or OFF")
    set_property(CACHE WEFT_WITH_${library} PROPERTY STRINGS AUTO ON OFF)
endforeach()
# Over libkqueue, which is no faster than epoll: to test for systems that have kqueue.
set(WEFT_WITH_KQUEUE OFF CACHE STRING "Use libkqueue: AUTO (if it is there), ON or OFF")
set_property(CACHE WEFT_WITH_KQUEUE PROPERTY STRINGS AUTO ON OFF)
option(WEFT_UNITY "Compile each layer as one unit: less work, for builds that only test" OFF)
option(WEFT_MODEL_TESTS "Build the tests under the model checker, which are the same in each build" ON)
option(WEFT_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
# The start of a process is most of what a short test costs, under a sanitizer nearly all of it.
set(WEFT_TEST_SHARDS 0 CACHE STRING
    "Run the tests of a layer in so many processes; 0: each test in its own")
set(WEFT_TEST_DRIVERS "epoll;io_uring" CACHE STRING
    "Run the tests of what waits once more, with every loop over each of these")
option(WEFT_INSTALL "Have cmake --install install weft" ${PROJECT_IS_TOP_LEVEL})
option(WEFT_MODULE "Build weft::module, for `import weft;`, with Clang and CMake 3.28" OFF)
option(WEFT_SHARED "Build weft::shared, which is libweft.so, too" OFF)
option(WEFT_FUZZ "Build the targets of libFuzzer, with Clang under a sanitizer; see the preset" OFF)
option(WEFT_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(WEFT_BENCH "Build the comparison, if there is Google Benchmark" ${PROJECT_IS_TOP_LEVEL})

foreach(choice WEFT_BACKEND WEFT_SANITIZE WEFT_WITH_URING WEFT_WITH_CARES WEFT_WITH_TLS WEFT_WITH_KQUEUE)
    get_property(known CACHE ${choice} PROPERTY STRINGS)
    if(NOT ${choice} IN_LIST known)
        message(FATAL_ERROR "${choice} is \"${${choice}}\"; it can be one of: ${known}")
    endif()
endforeach()

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(WEFT_CCACHE ccache)
    if(WEFT_CCACHE)
        # What it must be told to keep what includes a precompiled header.
        set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
            CCACHE_SLOPPINESS=pch_defines,time_macros ${WEFT_CCACHE})
    endif()
endif()

set(weft_warnings -Wall -Wextra -Wconversion -Wshadow -Wold-style-cast -Werror)
set(weft_sanitize_address -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
set(weft_sanitize_thread -fsanitize=thread -fno-omit-frame-pointer)
set(weft_sanitize_none)
set(weft_sanitize ${weft_sanitize_${WEFT_SANITIZE}})

# weft_skip(<test> <label> <reason>): a test that cannot be built here is said aloud, and CTest counts
# it as skipped.
function(weft_skip test label reason)
    message(NOTICE "weft: ${test} is skipped: ${reason}")
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
    set_tests_properties(${test} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: " LABELS "${label}")
endfunction()

# weft_own(<target>): gives a target of this repository its language and its warnings.
function(weft_own target)
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
    target_compile_features(${target} PRIVATE cxx_std_20)
    target_compile_options(${target} PRIVATE ${weft_warnings} ${weft_sanitize})
    target_link_options(${target} PRIVATE ${weft_sanitize})
endfunction()

# weft_place_anywhere(<target>): a library that a shared object can be made of, unless the user has
# CMAKE_POSITION_INDEPENDENT_CODE off. Its functions may be inlined nevertheless: what replaces one of
# them from outside replaces no call within its file.
function(weft_place_anywhere target)
    if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE OR CMAKE_POSITION_INDEPENDENT_CODE)
        set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
        target_compile_options(${target} PRIVATE -fno-semantic-interposition)
    endif()
endfunction()
