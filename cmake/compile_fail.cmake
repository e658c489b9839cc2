# Run by CTest: `source` must be refused with a message that matches its first line,
# `// expect: <regex>`, and must compile with -DCONTROL.

file(STRINGS "${source}" first LIMIT_COUNT 1)
if(NOT first MATCHES "^// expect: (.+)$")
    message(FATAL_ERROR "${source}: the first line is not `// expect: <regex>`")
endif()
set(expected "${CMAKE_MATCH_1}")
set(command ${CMAKE_COMMAND} -E env LC_ALL=C ${compiler} ${flags} "-I${root}" -fsyntax-only)

execute_process(COMMAND ${command} -DCONTROL "${source}" RESULT_VARIABLE status ERROR_VARIABLE said)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "${source}: does not compile with -DCONTROL:\n${said}")
endif()

execute_process(COMMAND ${command} "${source}" RESULT_VARIABLE status ERROR_VARIABLE said)
if(status EQUAL 0)
    message(FATAL_ERROR "${source}: compiles, and must not")
elseif(NOT said MATCHES "${expected}")
    message(FATAL_ERROR "${source}: refused, but not with `${expected}`:\n${said}")
endif()
