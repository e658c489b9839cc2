# What weft does not have on Windows: whole layers, sources of layers, and tests. What Windows has its
# own file for is in no list: <name>_windows.cpp (weft_of_system).

# Layers that are not written for it yet.
set_property(GLOBAL APPEND PROPERTY WEFT_NOT_ON_WINDOWS unwind coroutine fiber sched sync io run
    poll parallel future posix hook manager task wait)

# There is no eventfd.
set_property(GLOBAL APPEND PROPERTY WEFT_NOT_ON_WINDOWS base/event_fd.cpp base/event_fd_test.cpp)

# There is no report of an overflow, see overflow_windows.cpp.
set_property(GLOBAL APPEND PROPERTY WEFT_NOT_ON_WINDOWS stack/overflow_test.cpp)
