# Run by cpack, on the installed tree before it becomes a package: Debian's own documents come in, and
# what Debian strips goes out.

if(NOT CPACK_WEFT_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
    message(FATAL_ERROR "libweft-dev is made of a Release build; this is \"${CPACK_WEFT_BUILD_TYPE}\"")
endif()
if(CPACK_WEFT_UNDECIDED)
    message(FATAL_ERROR "what libweft-dev holds is not to depend on where it is made: "
        "ON or OFF is to be said for${CPACK_WEFT_UNDECIDED}")
endif()
if(CPACK_WEFT_NOT_IN_DEBIAN)
    message(FATAL_ERROR "libweft-dev cannot depend on what Debian does not have: ${CPACK_WEFT_NOT_IN_DEBIAN}")
endif()
set(source "${CMAKE_CURRENT_LIST_DIR}/..")
set(tree "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
set(documents "${tree}/usr/share/doc/${CPACK_DEBIAN_PACKAGE_NAME}")

function(weft_run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The licence has its place in `copyright`, in paragraphs that are indented.
file(REMOVE_RECURSE "${tree}${CPACK_PACKAGING_INSTALL_PREFIX}/share/doc/weft")
file(READ "${source}/LICENSE" licence)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]*)\n+(.*[^\n])\n*$" all "${licence}")
set(holders "${CMAKE_MATCH_1}")
string(REPLACE "\n\n" "\n.\n" terms "${CMAKE_MATCH_2}")
string(REPLACE "\n" "\n " terms "${terms}")
file(WRITE "${documents}/copyright"
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ${CPACK_DEBIAN_PACKAGE_SOURCE}

Files: *
Copyright: ${holders}
License: Expat
 ${terms}
")

# The date of what it is made of, not of today: this file is the same for each architecture.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
    execute_process(COMMAND git -C "${source}" log -1 --format=%ct
        OUTPUT_VARIABLE committed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(committed)
        set(ENV{SOURCE_DATE_EPOCH} ${committed})
    endif()
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE "${documents}/changelog.Debian"
"${CPACK_DEBIAN_PACKAGE_SOURCE} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Made by CPack. What is new in weft itself is in changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
file(COPY_FILE "${source}/CHANGELOG.md" "${documents}/changelog")
weft_run(gzip -9n "${documents}/changelog" "${documents}/changelog.Debian")

# As dh_strip does.
file(GLOB_RECURSE archives "${tree}/*.a")
weft_run("${CPACK_WEFT_STRIP}" --strip-debug --remove-section=.comment --remove-section=.note
    --enable-deterministic-archives ${archives})
file(GLOB_RECURSE objects "${tree}/*.so")
if(objects)
    weft_run("${CPACK_WEFT_STRIP}" --strip-unneeded --remove-section=.comment --remove-section=.note
        ${objects})
endif()
