"""What weft and Bazel itself load of rules_cc, in the place of it: the rules that Bazel 4 has within."""

def cc_library(**given):
    native.cc_library(**given)

def cc_binary(**given):
    native.cc_binary(**given)

def cc_toolchain(**given):
    native.cc_toolchain(**given)

def cc_toolchain_suite(**given):
    native.cc_toolchain_suite(**given)
