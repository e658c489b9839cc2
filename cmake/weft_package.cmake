# `cpack` makes libweft-dev_<version>_<architecture>.deb of what is installed, in a build folder that was
# configured with CMAKE_INSTALL_PREFIX=/usr: the archives are then in /usr/lib/<architecture>, where Debian
# has them. packaging/debian.cmake gives the installed tree the form of a Debian package.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_CONTACT "weft authors <weft@weft.invalid>" CACHE STRING
    "The maintainer that the Debian package names, with an address")
mark_as_advanced(CPACK_PACKAGE_CONTACT)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "C++20 coroutines for network servers - development files")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Straight-line code in fibers, or C++20 tasks that co_await: both run on one
event loop, over epoll or io_uring, and share the same locks, channels, timers
and sockets. A suspended coroutine can be destroyed at any point, and every
destructor on its stack runs.

This package has the headers, static libraries, files for CMake and pkg-config,
and weft/libweft_hook.so, which is loaded before a program so that blocking
calls of libc suspend the fiber that makes them.")

# A revision that sorts before Debian's own.
set(CPACK_DEBIAN_PACKAGE_RELEASE 0upstream1)
set(CPACK_DEBIAN_PACKAGE_NAME libweft-dev)
set(CPACK_DEBIAN_PACKAGE_SOURCE weft)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
# It can be installed beside that of another architecture: outside of /usr/lib/<architecture> both have the
# same files. CMake has a variable for the field from 3.31 on; before, the field follows another.
if(CMAKE_VERSION VERSION_LESS 3.31)
    string(APPEND CPACK_DEBIAN_PACKAGE_SECTION "\nMulti-Arch: same")
else()
    set(CPACK_DEBIAN_PACKAGE_MULTIARCH same)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# What libweft_hook.so needs is asked of dpkg-shlibdeps; a static archive needs what its user links.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(weft_depends "")
set(CPACK_WEFT_NOT_IN_DEBIAN "")
foreach(part IN LISTS weft_parts)
    get_property(used GLOBAL PROPERTY WEFT_USED_BY_${part})
    set(foreign ${used})
    list(FILTER foreign INCLUDE REGEX " none$")
    list(TRANSFORM foreign REPLACE "^(.*) none$" "lib\\1")
    list(APPEND CPACK_WEFT_NOT_IN_DEBIAN ${foreign})
    list(TRANSFORM used REPLACE "^.* " "")
    get_property(needs GLOBAL PROPERTY WEFT_NEEDS_${part})
    if(needs)
        # The version of the library is that of its Debian package.
        list(TRANSFORM needs REPLACE "^.* " "")
        string(REGEX REPLACE "(.*);(.*)" "\\2 (>= \\1)" needs "${needs}")
    endif()
    list(APPEND weft_depends ${used} ${needs})
endforeach()
list(JOIN weft_depends ", " CPACK_DEBIAN_PACKAGE_DEPENDS)

set(CPACK_PRE_BUILD_SCRIPTS "${weft_packaging}/debian.cmake")
set(CPACK_WEFT_BUILD_TYPE "${CMAKE_BUILD_TYPE}")
set(CPACK_WEFT_STRIP "${CMAKE_STRIP}")
set(CPACK_WEFT_UNDECIDED "")
foreach(choice IN ITEMS WEFT_WITH_URING WEFT_WITH_CARES WEFT_WITH_TLS WEFT_WITH_KQUEUE)
    if(${choice} STREQUAL "AUTO")
        string(APPEND CPACK_WEFT_UNDECIDED " ${choice}")
    endif()
endforeach()
include(CPack)
