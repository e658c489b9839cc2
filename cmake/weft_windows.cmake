# What weft does not have on Windows: whole layers, sources of layers, and tests. What Windows has its
# own file for is in no list: <name>_windows.cpp (weft_of_system).

# Layers that are not written for it yet.
set_property(GLOBAL APPEND PROPERTY WEFT_NOT_ON_WINDOWS fiber sched sync io run
    poll parallel future posix hook manager task wait)

# There is no eventfd.
set_property(GLOBAL APPEND PROPERTY WEFT_NOT_ON_WINDOWS base/event_fd.cpp base/event_fd_test.cpp)

# There is no report of an overflow, see overflow_windows.cpp.
set_property(GLOBAL APPEND PROPERTY WEFT_NOT_ON_WINDOWS stack/overflow_test.cpp)

# Frames are walked by the system's own tables; there is no DWARF. What is read elsewhere in the machine
# code, and fast_unwind, are for that walk.
set_property(GLOBAL APPEND PROPERTY WEFT_NOT_ON_WINDOWS unwind/unwind.cpp unwind/unwind_cache.cpp
    unwind/unwind_decode.cpp unwind/unwind_frame.cpp unwind/unwind_pad.cpp unwind/unwind_walk.cpp unwind/fast_unwind/fast_unwind.cpp
    unwind/unwind_rules_test.cpp unwind/unwind_steps_test.cpp unwind/fast_unwind_test.cpp)

# No report of an overflow, see above.
set_property(GLOBAL APPEND PROPERTY WEFT_NOT_ON_WINDOWS coroutine/overflow_report_test.cpp)
